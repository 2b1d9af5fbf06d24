"""`resolve`, `dismiss`, `snooze`, `reopen`, `assign` and `undo`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from typer import Argument, Option

from interventions.cli import options, terminal
from interventions.cli.retry import code_of_results, retry_request, say_result
from interventions.cli.terminal import UsageError
from interventions.entry import Entry, is_open, short_ids, worst_first
from interventions.errors import QueueError
from interventions.plaintext import one_line
from interventions.retry.contract import RetryResult, StillOpenError, find_resumer
from interventions.retry.retries import retry_entry
from interventions.times import ago, from_text, parse_duration, utc_now
from interventions.view.groups import entry_view, other_failures

if TYPE_CHECKING:
    from interventions.queue import ChangeOptions, InterventionQueue


def _duration(text: str) -> timedelta:
    if not (duration := parse_duration(text)):
        raise typer.BadParameter(f"{text!r} is no duration, such as 30m, 4h, 2d")
    return duration


def _moment(text: str) -> datetime:
    try:
        return from_text(text)
    except ValueError as error:
        what = "is no time with a time zone, such as 2026-01-31T09:00:00Z"
        raise typer.BadParameter(f"{text!r} {what}") from error


_Query = Annotated[str | None, Option("--query", help="All open ones that match, instead of ids.")]


def resolve(
    note_text: options.NoteText,
    ids: options.Ids = None,
    query: _Query = None,
    retry: Annotated[
        bool, Option("--retry", help="Resume the turn first; resolve only if that works.")
    ] = False,
    **flags: Unpack[options.ResumeFlags],
) -> None:
    """Close interventions as solved, with a note how.

    The note is shown to the next person who meets the failure.
    """
    if not note_text.strip():
        raise UsageError("a resolution needs a note", hint='--note "what you mended"')
    if retry:
        find_resumer()
    elif flags["grant"] or flags["rerun_tools"] or flags["tools_done"] or flags["of_resumer"]:
        raise UsageError("an option of the turn lets it go on: that needs --retry")
    queue = options.the_queue(flags["home"])
    results: dict[str, RetryResult] = {}

    def one(wanted: str, **change: Unpack[ChangeOptions]) -> Entry:
        if not retry:
            return queue.resolve(wanted, note_text, **change)
        entry = queue.find(wanted)
        request = replace(retry_request(entry, note_text, flags), answer=note_text)
        version = change["expected_version"]
        after, result = retry_entry(queue, request, expected_version=version)
        say_result(entry, result, with_response=not flags["as_json"])
        results[entry["id"]] = result
        if is_open(after):
            raise StillOpenError(after, result)
        return after

    each(queue, "resolve", ids, query, one, flags, results)
    if code := code_of_results(results.values()):
        raise typer.Exit(code)


def dismiss(
    ids: options.Ids = None,
    note_text: Annotated[str, Option("--note", "-m", help="Why it needs no fix.")] = "",
    query: _Query = None,
    **flags: Unpack[options.BatchFlags],
) -> None:
    """Close interventions as not worth a fix.

    They never count as solved.
    """
    queue = options.the_queue(flags["home"])
    each(queue, "dismiss", ids, query, partial(queue.dismiss, note=note_text), flags)


def snooze(
    ids: options.Ids = None,
    duration: Annotated[
        timedelta | None, Option("--for", parser=_duration, metavar="TIME", help="30m, 4h, 2d.")
    ] = None,
    until: Annotated[
        datetime | None, Option(parser=_moment, metavar="TIME", help="ISO 8601 time with a zone.")
    ] = None,
    until_n_more: Annotated[
        int | None, Option("--until-n-more", "--more", min=1, help="Until it came N more times.")
    ] = None,
    query: _Query = None,
    **flags: Unpack[options.BatchFlags],
) -> None:
    """Hear nothing of a failure for a while.

    It stays open, and goes on counting.
    """
    if sum(value is not None for value in (duration, until, until_n_more)) != 1:
        ways = "--for 4h, --until TIME or --until-n-more 10"
        raise UsageError("say for how long, in one way", hint=ways)
    queue = options.the_queue(flags["home"])
    one = partial(queue.snooze, duration=duration, until=until, until_n_more=until_n_more)
    each(queue, "snooze", ids, query, one, flags)


def reopen(ids: options.Ids = None, **flags: Unpack[options.ChangeFlags]) -> None:
    """Open closed interventions again, from the archive too."""
    queue = options.the_queue(flags["home"])
    each(queue, "reopen", ids, None, queue.reopen, {**flags, "yes": True})


def assign(
    intervention_id: options.Id,
    owner: Annotated[str | None, Argument(help="Who takes it; nobody if left out.")] = None,
    **flags: Unpack[options.ChangeFlags],
) -> None:
    """Say who looks into it."""
    entry = options.the_queue(flags["home"]).assign(intervention_id, owner, **_change(flags))
    if flags["as_json"]:
        terminal.say_json(entry_view(entry, utc_now()))
    else:
        terminal.say(f"{entry['id']} is assigned to {one_line(entry['owner'] or 'nobody')}")


def undo(
    intervention_id: Annotated[
        str | None, Argument(metavar="[ID]", help="Whose last change; the last of all if left out.")
    ] = None,
    **flags: Unpack[options.ChangeFlags],
) -> None:
    """Take back the last resolve, dismiss, snooze, reopen or assign."""
    if flags["expected_version"] is not None and intervention_id is None:
        raise UsageError("--expected-version needs the ID whose version it is")
    line, entry = options.the_queue(flags["home"]).undo(intervention_id, **_change(flags))
    if flags["as_json"]:
        terminal.say_json({"undone": line, "intervention": entry_view(entry, utc_now())})
    else:
        when = ago(line["at"], utc_now())
        terminal.say(f"undone: {line['action']} of {entry['id']} by {one_line(line['by'])}, {when}")


def _change(flags: options.ChangeFlags) -> ChangeOptions:
    return {"expected_version": flags["expected_version"], "by": flags["by"], "via": "cli"}


def each(
    queue: InterventionQueue,
    action: str,
    ids: list[str] | None,
    query: str | None,
    one: Callable[..., Entry],
    flags: options.BatchFlags,
    results: Mapping[str, RetryResult] | None = None,
) -> None:
    """Do it to each, go on after a refusal, and exit with the code of the first one. `results` is
    what became of turns that were resumed for it, by id."""
    as_json, past = flags["as_json"], f"{action.removesuffix('e')}ed"
    wanted = _chosen(queue, ids, query)
    if not flags["yes"] and wanted:
        _confirm(queue, action, wanted, is_query=query is not None)
    done: list[Entry] = []
    failed: list[dict[str, Any]] = []
    for name in wanted:
        try:
            done.append(one(name, **_change(flags)))
        except QueueError as error:
            code = int(terminal.code_of(error))
            failed.append({"id": name, "error": str(error), "exit_code": code})
            terminal.report(error)
    if as_json:
        now = utc_now()
        shown: dict[str, Any] = {past: [entry_view(entry, now) for entry in done], "failed": failed}
        if results:
            shown["results"] = {name: result.as_dict() for name, result in results.items()}
        terminal.say_json(shown)
    else:
        for entry in done:
            terminal.say(f"{past} {entry['id']}")
    if failed:
        raise typer.Exit(failed[0]["exit_code"])


def _chosen(queue: InterventionQueue, ids: list[str] | None, query: str | None) -> list[str]:
    if bool(ids) == (query is not None):
        what = "name the interventions, by ids or by --query"
        raise UsageError(what, hint="ids: interventions list")
    if ids:
        return list(dict.fromkeys(ids))
    if not (query or "").strip():
        raise UsageError("an empty query would mean all", hint="to mean them: --query is:open")
    matching = options.query_of([query or ""]).select(list(queue.entries()), utc_now())
    if not matching:
        terminal.note("nothing matches")
    return [entry["id"] for entry in worst_first(matching)]


def _confirm(queue: InterventionQueue, action: str, wanted: list[str], *, is_query: bool) -> None:
    """Ask before changing what a query found, or entries that hold other failures as well."""
    held = []
    for name in wanted if action in ("resolve", "dismiss") else ():
        with suppress(QueueError):  # the change itself says what is wrong
            held.append(queue.find(name))
    others = other_failures(held)
    if not (is_query or others):
        return
    count = f"{len(wanted)} intervention{'s' if len(wanted) > 1 else ''}"
    what = f"{action} {count} ({short_ids(wanted, 10)})"
    if others:
        what += f" and what else {'it holds' if len(wanted) == 1 else 'they hold'}"
        held_too = f"{len(others)} other failure{'s' if len(others) > 1 else ''}"
        terminal.note(f"{count}, holding {held_too}:")
        terminal.note_others(others)
    terminal.confirm(what)
