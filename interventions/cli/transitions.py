"""`resolve`, `dismiss`, `snooze`, `reopen`, `assign` and `undo`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import typer

from interventions.cli.options import (
    AsJson,
    ChangeFlags,
    Home,
    Id,
    Ids,
    Yes,
    query_of,
    the_queue,
)
from interventions.cli.retry import say_result, say_retry_failed, with_person
from interventions.cli.retry_options import Grant, NoteText, OfResumer, RerunTools, ToolsDone
from interventions.cli.terminal import (
    Code,
    UsageError,
    code_of,
    is_asked,
    note,
    note_others,
    report,
    say,
    say_json,
)
from interventions.entry import Entry, short_ids, worst_first
from interventions.errors import QueueError
from interventions.plaintext import clean, one_line
from interventions.retry.contract import RetryFailedError, RetryRequest, RetryResult, StillOpenError
from interventions.retry.entry_points import find_resumer
from interventions.retry.retries import retry_and_resolve
from interventions.times import from_text, parse_duration, utc_now
from interventions.view.groups import entry_view
from interventions.view.others import other_failures

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue


_Query = Annotated[
    str | None, typer.Option("--query", help="All open ones that match, instead of ids.")
]


def resolve(
    note_text: NoteText,
    ids: Ids = None,
    query: _Query = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Resume the turn first; resolve only if that works.")
    ] = False,
    rerun_tools: RerunTools = False,
    tools_done: ToolsDone = False,
    grant: Grant = None,
    home: Home = None,
    yes: Yes = False,
    as_json: AsJson = False,
    of_resumer: OfResumer = None,
    **change: Unpack[ChangeFlags],
) -> None:
    """Close interventions as solved, with a note for the next person who meets the failure."""
    if not note_text.strip():
        raise UsageError("a resolution needs a note", hint='--note "what you mended"')
    queue = the_queue(home)
    if retry:
        find_resumer()
    elif grant or rerun_tools or tools_done or of_resumer:
        given = (("--grant", grant), ("--rerun-tools", rerun_tools), ("--tools-done", tools_done))
        named = next((name for name, value in given if value), "an option of the turn")
        raise UsageError(f"{named} lets a turn go on: it needs --retry")
    results: dict[str, RetryResult] = {}

    def one(wanted: str) -> Entry:
        if not retry:
            return queue.resolve(wanted, note_text, via="cli", **change)
        entry = queue.find(wanted)
        request = RetryRequest(
            entry["turn_id"],
            entry["id"],
            note_text,
            answer=note_text,
            grant=grant,
            rerun_tools=rerun_tools,
            tools_done=tools_done,
            by=change["by"],
            via="cli",
            options=of_resumer or {},
        )
        retried = retry_and_resolve(
            queue,
            with_person(request, as_json=as_json),
            expected_version=change["expected_version"],
        )
        say_result(entry, retried.result, with_response=not as_json)
        results[entry["id"]] = retried.result
        return retried.entry

    each(queue, "resolve", ids, query, one, yes=yes, as_json=as_json, results=results)
    if any(result.failed for result in results.values()):
        raise typer.Exit(Code.FAILED)  # as `retry` does: the turn has failed again, later


def dismiss(
    ids: Ids = None,
    note_text: Annotated[str, typer.Option("--note", "-m", help="Why it needs no fix.")] = "",
    query: _Query = None,
    home: Home = None,
    yes: Yes = False,
    as_json: AsJson = False,
    **change: Unpack[ChangeFlags],
) -> None:
    """Close interventions as not worth a fix; they never count as solved."""
    queue = the_queue(home)
    one = partial(queue.dismiss, note=note_text, via="cli", **change)
    each(queue, "dismiss", ids, query, one, yes=yes, as_json=as_json)


def snooze(
    ids: Ids = None,
    for_: Annotated[str | None, typer.Option("--for", help="30m, 4h, 2d.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="ISO 8601 time with a zone.")] = None,
    until_n_more: Annotated[
        int | None,
        typer.Option("--until-n-more", "--more", min=1, help="Until it came N more times."),
    ] = None,
    query: _Query = None,
    home: Home = None,
    yes: Yes = False,
    as_json: AsJson = False,
    **change: Unpack[ChangeFlags],
) -> None:
    """Hear nothing of a failure for a while; it stays open and goes on counting."""
    if sum(value is not None for value in (for_, until, until_n_more)) != 1:
        ways = "--for 4h, --until TIME or --until-n-more 10"
        raise UsageError("say for how long, in one way", hint=ways)
    duration, moment = _duration(for_), _moment(until)
    queue = the_queue(home)
    snoozed = partial(queue.snooze, duration=duration, until=moment, until_n_more=until_n_more)
    one = partial(snoozed, via="cli", **change)
    each(queue, "snooze", ids, query, one, yes=yes, as_json=as_json)


def reopen(
    ids: Ids = None,
    home: Home = None,
    as_json: AsJson = False,
    **change: Unpack[ChangeFlags],
) -> None:
    """Open closed interventions again, from the archive too."""
    queue = the_queue(home)
    one = partial(queue.reopen, via="cli", **change)
    each(queue, "reopen", ids, None, one, yes=True, as_json=as_json)


def assign(
    intervention_id: Id,
    owner: Annotated[str | None, typer.Argument(help="Who takes it; nobody if left out.")] = None,
    home: Home = None,
    as_json: AsJson = False,
    **change: Unpack[ChangeFlags],
) -> None:
    """Say who looks into it."""
    entry = the_queue(home).assign(intervention_id, owner, via="cli", **change)
    if as_json:
        say_json(entry_view(entry, utc_now()))
    else:
        say(f"{entry['id']} is assigned to {one_line(entry['owner'] or 'nobody')}")


def undo(
    intervention_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Whose last change; the last of all if left out."),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
    **change: Unpack[ChangeFlags],
) -> None:
    """Take back the last resolve, dismiss, snooze, reopen or assign."""
    if change["expected_version"] is not None and intervention_id is None:
        raise UsageError("--expected-version needs the ID whose version it is")
    line, entry = the_queue(home).undo(intervention_id, via="cli", **change)
    if as_json:
        say_json({"undone": line, "intervention": entry_view(entry, utc_now())})
    else:
        say(f"undone: {line['action']} of {entry['id']} by {one_line(line['by'])}, {line['at']}")


def _duration(text: str | None) -> timedelta | None:
    if text is None:
        return None
    duration = parse_duration(text)
    if duration is None or not duration:
        raise UsageError(f"{text!r} is no duration", hint="for example 30m, 4h, 2d")
    return duration


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return from_text(text)
    except ValueError as error:
        what = "has no time zone" if "zone" in str(error) else "is no time"
        example = "for example 2026-01-31T09:00:00Z"
        raise UsageError(f"--until: {text!r} {what}", hint=example) from error


Action = Literal["resolve", "dismiss", "snooze", "reopen"]
_DONE: Mapping[Action, str] = {
    "resolve": "resolved",
    "dismiss": "dismissed",
    "snooze": "snoozed",
    "reopen": "reopened",
}


def each(
    queue: InterventionQueue,
    action: Action,
    ids: list[str] | None,
    query: str | None,
    one: Callable[[str], Entry],
    *,
    yes: bool,
    as_json: bool,
    results: Mapping[str, RetryResult] | None = None,
) -> None:
    """Do it to each, go on after a refusal, and exit with the code of the first one. `results` is
    what became of turns that were resumed for it, by id."""
    wanted = _chosen(queue, ids, query)
    if not yes and wanted:
        _confirm(queue, action, wanted, is_query=query is not None)
    done: list[Entry] = []
    failed: list[dict[str, Any]] = []
    for name in wanted:
        try:
            done.append(one(name))
        except QueueError as error:
            failed.append({"id": name, "error": str(error), "exit_code": int(code_of(error))})
            if isinstance(error, StillOpenError):
                failed[-1]["result"] = error.retried.result.as_dict()
                say_result(error.retried.entry, error.retried.result, with_response=not as_json)
            report(error)
        except RetryFailedError as error:
            failed.append({"id": name, "error": str(error), "exit_code": int(Code.FAILED)})
            say_retry_failed(queue.find(name), error)
        except ValueError as error:
            raise UsageError(str(error)) from error
    if as_json:
        now = utc_now()
        shown: dict[str, Any] = {
            _DONE[action]: [entry_view(entry, now) for entry in done],
            "failed": failed,
        }
        if results:
            shown["results"] = {name: result.as_dict() for name, result in results.items()}
        say_json(shown)
    else:
        for entry in done:
            say(f"{_DONE[action]} {entry['id']}")
    if failed:
        raise typer.Exit(failed[0]["exit_code"])


def _chosen(queue: InterventionQueue, ids: list[str] | None, query: str | None) -> list[str]:
    if bool(ids) == (query is not None):
        raise UsageError(
            "name the interventions, by ids or by --query", hint="ids: interventions list"
        )
    if ids:
        return list(dict.fromkeys(ids))
    if not (query or "").strip():
        raise UsageError("an empty query would mean all", hint="to mean them: --query is:open")
    matching = query_of([query or ""]).select(list(queue.entries()), utc_now())
    if not matching:
        note("nothing matches")
    return [entry["id"] for entry in worst_first(matching)]


def _confirm(
    queue: InterventionQueue, action: Action, wanted: list[str], *, is_query: bool
) -> None:
    """Of what a query found, and of entries whose other failures would be closed with them."""
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
        note(f"{count}, holding {len(others)} other failure{'s' if len(others) > 1 else ''}:")
        note_others(others)
    if not is_asked():
        raise UsageError(f"{what}: without a terminal this needs --yes")
    if not typer.confirm(clean(f"{what}?"), err=True):
        raise UsageError("nothing was changed")
