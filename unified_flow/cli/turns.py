"""`unified-flow turns`: their questions, and how far each came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

import typer
from typer import Argument, Option

from interventions.cli.terminal import Code, confirm, note, say, width
from interventions.home import find_home
from interventions.plaintext import one_line
from interventions.secrets.redaction import WHOLE, redact, redact_text
from unified_flow.cli import options
from unified_flow.cli.sessions import session_named
from unified_flow.cli.terminal import (
    beginning,
    counted,
    on_terminal,
    progress_bar,
    say_object,
    say_result,
)

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from unified_flow.turns.turn_index import TurnQuery, TurnRow

# As `turns.turn.Status`, which takes too long to load for a list of options.
Status = Literal[
    "queued", "running", "answered", "clarify", "failed", "interrupted", "abandoned", "silenced"
]


class TurnFilters(TypedDict, total=False):
    """Options of `list` and `abandon`, as `**filters: Unpack[TurnFilters]`."""

    status: Annotated[Status | None, Option(help="Only turns of this status.")]
    phase: Annotated[str | None, Option(help="Only turns that failed or stopped in it.")]
    session: options.Session
    error: Annotated[str | None, Option(help="Part of the failure's type or message.")]
    model: Annotated[str | None, Option(help="Part of the name of a model that they asked.")]
    text: Annotated[str | None, Option(help="Part of the question or the answer.")]
    since: Annotated[str | None, Option(metavar="TIME", help="Begun since: 2h, 30d, 2026-01-31.")]
    before: Annotated[str | None, Option(metavar="TIME", help="Begun before: 2h, 30d, 2026-01-31.")]


def list_turns(
    limit: options.Limit = 20,
    as_json: options.AsJson = False,
    as_jsonl: options.AsJsonl = False,
    home: options.Home = None,
    **filters: Unpack[TurnFilters],
) -> None:
    """The latest turns, newest first.

    \b
    unified-flow turns list --session ros --limit 5
    unified-flow turns list --status failed --phase synthesis --since 2h
    """
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive

    query = _query(filters, home)
    found, unreadable = wait_for(turn_archive(home).select(limit or None, query))
    for problem in unreadable.values():
        note(f"skipped: {problem}")
    rows = (row | {"question": redact_text(row["question"])} for row in found)
    if as_json:
        left_out = [{"turn_id": each, "why": why} for each, why in unreadable.items()]
        say_object({"turns": list(rows), "unreadable": left_out})
    elif as_jsonl:
        for row in rows:
            say_object(row)
    elif found:
        for row in rows:
            say(_line(row))
    elif not unreadable:
        none_yet = "no turns yet: unified-flow ask '…' --docs FOLDER"
        note(none_yet if query.is_empty else "no turn matches")


def _query(filters: TurnFilters, home: Path | None) -> TurnQuery:
    from unified_flow.phases import NAMES
    from unified_flow.turns.turn_index import TurnQuery

    given: dict[str, Any] = {**filters}
    for name, value in given.items():
        if value == "":  # of a variable that is not set; it would take every turn
            raise typer.BadParameter(f"--{name} is empty")
    if given.get("phase") not in (None, *NAMES):
        why = f"--phase: there is no phase {given['phase']!r}: {', '.join(NAMES)}"
        raise typer.BadParameter(why)
    given["session"] = session_named(given.get("session"), home)
    for name in ("since", "before"):
        if given.get(name) is not None:
            given[name] = _moment(f"--{name}", given[name])
    return TurnQuery(**given)


def _moment(option: str, text: str) -> datetime:
    """A time, a day's beginning in UTC, or so long ago."""
    from interventions.times import earlier, from_text, parse_duration, utc_now

    ago = parse_duration(text)
    if ago is not None:
        return earlier(utc_now(), ago)
    try:
        return from_text(f"{text}T00:00Z" if len(text) == len("2026-01-31") else text)
    except ValueError as exc:
        why = f"{option}: {text!r} is no time: 2h, 30d, 2026-01-31, 2026-01-31T09:00:00Z"
        raise typer.BadParameter(why) from exc


def show_turn(
    turn: options.Turn,
    full: Annotated[bool, Option("--full", help="All that each phase found.")] = False,
    timeline: Annotated[bool, Option("--timeline", help="Its phases over time.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """One turn as far as it came, phase by phase.

    \b
    unified-flow turns show 12
    unified-flow turns show last --full
    """
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive

    archive = turn_archive(home)
    found = wait_for(archive.require(wait_for(archive.number(turn))))
    if as_json:
        from unified_flow.turns.sections import written

        whole = found.as_row() | {
            "response": found.response,
            "sections": written(found.sections),
            "phases": found.phases,
        }
        say_object(redact(whole))
    elif full:
        say(redact(wait_for(archive.page(found.turn_id)), WHOLE))
    else:
        from unified_flow.cli import turn_screen

        events = wait_for(archive.store.read(found.turn_id))
        if timeline:
            lines = turn_screen.timeline(events, width())
        else:
            lines = turn_screen.screen(found, events, width())
        for line in lines:
            say(line)
        if unknown := turn_screen.unknown_fields(events):
            note(f"ignored, as this version does not know them: {', '.join(unknown)}")
        if not timeline:
            note(f"all of it: unified-flow turns show {found.turn_id} --full")


def _line(row: TurnRow) -> str:
    columns = width() if on_terminal() else 200
    started = (row["started_at"] or "")[5:16].replace("T", " ")
    where = f" at {row['failed_phase']}" if row["failed_phase"] else ""
    if row["status"] == "interrupted" and row["stopped_in"]:
        where = f" in {row['stopped_in']}"
    if row["resumed"]:
        where += ", resumed" if row["fork_of"] is None else f", fork of {row['fork_of']}"
    head = f"{row['turn_id']:>6}  {started}  {row['status'] + where:<26} "
    return head + beginning(row["question"], max(20, columns - len(head)))


def abandon(
    turn: Annotated[
        str | None,
        Argument(metavar="[TURN]", help="The turn; without it, all that the options match."),
    ] = None,
    reason: Annotated[str, Option("--note", "-m", help="Why.")] = "",
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
    **filters: Unpack[TurnFilters],
) -> None:
    """Give a turn up, or many. Their open interventions say so, and can be closed in bulk.

    \b
    unified-flow turns abandon 12 --note "asked again as 15"
    unified-flow turns abandon --status failed --before 7d
    interventions dismiss --query is:superseded --yes
    """
    import asyncio

    from interventions.queue import queue_at
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume import housekeeping
    from unified_flow.stores import turn_archive
    from unified_flow.turns.turn import FINISHED

    query = _query(filters, home)
    if (turn is None) == query.is_empty:
        raise typer.BadParameter("name one turn, or say which: --status failed --before 7d")
    turns, queue = turn_archive(home), queue_at(home)
    if turn is not None:
        chosen = [wait_for(turns.number(turn))]
    else:
        found, unreadable = wait_for(turns.select(None, query))
        for problem in unreadable.values():
            note(f"skipped: {problem}")
        # The oldest first, so that the next one that waits for the same fix is soon found.
        chosen = [row["turn_id"] for row in reversed(found) if row["status"] not in FINISHED]
        if chosen and not yes:
            some = ", ".join(map(str, chosen[:10])) + (", …" if len(chosen) > 10 else "")
            confirm(f"abandon {counted(len(chosen), 'turn')} ({some})")
    with progress_bar("abandoning", show=turn is None and on_terminal()) as bar:
        progress = bar or (lambda *_: None)
        doing = housekeeping.abandon(turns.store, queue, chosen, redact_text(reason), progress)
        # In a loop of its own, which Ctrl-C ends only when the interventions are marked.
        done = asyncio.run(doing)
    if turn is not None and done.refused:
        raise done.refused[0]
    refused = [str(exc) for exc in done.refused]
    for why in refused:
        note(f"skipped: {one_line(redact_text(why))}")
    if turn is not None:
        value: dict[str, Any] = {"turn_id": chosen[0], "status": "abandoned"}
        said = f"turn {chosen[0]} is abandoned"
    else:
        value = {"abandoned": done.turns, "refused": refused}
        said = f"abandoned {counted(done.turns, 'turn')}"
    say_result(as_json, value | {"superseded": done.superseded}, said)
    if done.superseded and not as_json:
        next_step = "interventions dismiss --query is:superseded"
        note(f"superseded: {done.superseded}; next: {next_step}")
    if refused:
        raise typer.Exit(Code.FAILED)


def salvage(turn: options.Turn, as_json: options.AsJson = False, home: options.Home = None) -> None:
    """Cut a damaged journal to its last whole line, to resume.

    The damaged rest is set aside in a file beside the journal; nothing is deleted.

    \b
    unified-flow turns salvage 12
    unified-flow resume 12
    """
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume import housekeeping
    from unified_flow.stores import turn_archive

    archive = turn_archive(home)
    turn_id = wait_for(archive.number(turn))
    kept, event = wait_for(housekeeping.salvage(archive.store, turn_id))
    found = wait_for(archive.require(turn_id))
    aside = f"{archive.store.place(turn_id)}/{event.aside}"
    if as_json:
        lines = {"kept_lines": kept, "set_aside_lines": event.lines}
        say_object({"turn_id": turn_id, "status": found.status, "aside": aside} | lines)
        return
    stands = f"{found.completed} has completed" if found.completed else "nothing is done"
    say(f"turn {turn_id} is kept up to line {kept}: {stands}")
    note(f"set aside, {event.lines} lines: {aside}")
    for tool in dict.fromkeys(call.tool for call in event.calls):
        note(f"{one_line(redact_text(tool))} may have written in them: look whether it did")
    note(f"next: unified-flow resume {turn_id}")


def prune(
    older_than: Annotated[
        str | None, Option("--older-than", help="12h, 30d, … [default: as [retention] says]")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say which.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Delete old turns that nobody needs to go on.

    These are answered, asked back, abandoned, or failed with a closed intervention.

    Turns that an open intervention is about, interrupted turns and the newest stay. Without
    --older-than also turns, sessions and logs beyond what [retention] keeps are deleted.

    \b
    unified-flow turns prune --older-than 30d --dry-run
    """
    from interventions.times import parse_duration
    from unified_flow.resume.retention import prune as let_go

    age = parse_duration(older_than) if older_than is not None else None
    if older_than is not None and age is None:
        raise typer.BadParameter(f"{older_than!r} is no duration: 12h, 30d")
    gone = let_go(find_home(home), older_than=age, dry_run=dry_run)
    names = ", ".join(map(str, gone.turns)) or "none"
    said = f"would delete: {names}" if dry_run else f"deleted {gone.removed}: {names}"
    if gone.sessions or gone.logs:
        said += f"; {counted(len(gone.sessions), 'session')}, {counted(len(gone.logs), 'log file')}"
    value = {"turns": gone.turns, "removed": gone.removed, "sessions": gone.sessions}
    say_result(as_json, value | {"logs": [path.name for path in gone.logs]}, said)
