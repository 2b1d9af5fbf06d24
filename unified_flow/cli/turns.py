"""`unified-flow turns`: their questions, and how far each came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from interventions.cli.terminal import note, say, width
from interventions.home import find_home
from interventions.plaintext import one_line
from interventions.secrets.redaction import WHOLE, redact, redact_text
from unified_flow.cli import options
from unified_flow.cli.sessions import session_named
from unified_flow.cli.terminal import beginning, on_terminal, say_object, say_result

if TYPE_CHECKING:
    from pathlib import Path

    from unified_flow.turns.archive import TurnArchive
    from unified_flow.turns.turn import Turn


def list_turns(
    session: options.Session = None,
    limit: options.Limit = 20,
    interrupted: Annotated[
        bool,
        typer.Option("--interrupted", help="Only those that were stopped: unified-flow resume N."),
    ] = False,
    as_json: options.AsJson = False,
    as_jsonl: options.AsJsonl = False,
    home: options.Home = None,
) -> None:
    """The latest turns, newest first.

    \b
    unified-flow turns list --session ros --limit 5
    """
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive

    session = session_named(session, home)
    latest = turn_archive(home).latest(limit or None, session, interrupted=interrupted)
    turns, damaged = wait_for(latest)
    for problem in damaged:
        note(f"skipped: {problem}")
    rows = [turn.as_row() | {"question": redact_text(turn.question)} for turn in turns]
    if as_json:
        say_object({"turns": rows})
    elif as_jsonl:
        for row in rows:
            say_object(row)
    elif not rows and not damaged:
        none_yet = "no turns yet: unified-flow ask '…' --docs FOLDER"
        note("no turn was interrupted" if interrupted else none_yet)
    else:
        _table(turns)


def show_turn(
    turn: options.Turn, as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """One turn, section by section, as far as it came.

    \b
    unified-flow turns show 12
    unified-flow turns show last
    """
    from unified_flow.lib.threads import wait_for

    archive, found = _turn_named(turn, home)
    if as_json:
        from unified_flow.turns.sections import written

        whole = found.as_row() | {
            "response": found.response,
            "sections": written(found.sections),
            "phases": found.phases,
        }
        say_object(redact(whole))
    else:
        say(redact(wait_for(archive.page(found.turn_id)), WHOLE))


def _turn_named(name: str, home: Path | None) -> tuple[TurnArchive, Turn]:
    from unified_flow.errors.turns import NoSuchTurnError
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive
    from unified_flow.turns.archive import MAX_DIGITS

    archive = turn_archive(home)
    found = wait_for(archive.find(name))
    if found is not None:
        return archive, found
    if name.isdecimal() and len(name) <= MAX_DIGITS:
        raise wait_for(archive.no_such_turn(int(name)))
    raise NoSuchTurnError(
        f"there is no turn {name} in {archive.store.place()}",
        hint="the turns: unified-flow turns list",
    )


def _table(turns: list[Turn]) -> None:
    columns = width() if on_terminal() else 200
    for turn in turns:
        started = f"{turn.started_at:%m-%d %H:%M}" if turn.started_at else ""
        where = f" at {turn.failure.phase}" if turn.failure else ""
        if turn.status == "interrupted" and turn.visits:
            where = f" in {turn.visits[-1].phase}"
        if turn.resumed:
            where += ", resumed" if turn.fork_of is None else f", fork of {turn.fork_of}"
        head = f"{turn.turn_id:>6}  {started}  {turn.status + where:<26} "
        say(head + beginning(redact_text(turn.question), max(20, columns - len(head))))


def abandon(
    turn: options.Turn,
    reason: Annotated[str, typer.Option("--note", "-m", help="Why.")] = "",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Give a turn up. Its open interventions say so, and can be closed in bulk.

    \b
    unified-flow turns abandon 12 --note "asked again as 15"
    interventions dismiss --query is:superseded --yes
    """
    from interventions.queue import queue_at
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume import housekeeping
    from unified_flow.stores import turn_store

    # By its number also one that cannot be read.
    turn_id = int(turn) if turn.isdecimal() else _turn_named(turn, home)[1].turn_id
    turns, queue = turn_store(find_home(home)), queue_at(home)
    marked = wait_for(housekeeping.abandon(turns, queue, turn_id, redact_text(reason)))
    if as_json:
        say_object({"turn_id": turn_id, "status": "abandoned", "superseded": marked})
    else:
        say(f"turn {turn_id} is abandoned")
        if marked:
            note(f"superseded: {marked}; next: interventions dismiss --query is:superseded")


def salvage(turn: options.Turn, as_json: options.AsJson = False, home: options.Home = None) -> None:
    """Keep a turn with a damaged journal up to its last whole line, so that it can be resumed.

    The damaged rest is set aside in a file beside the journal; nothing is deleted.

    \b
    unified-flow turns salvage 12
    unified-flow resume 12
    """
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume import housekeeping
    from unified_flow.stores import turn_store

    # By its number, for it cannot be read.
    turn_id = int(turn) if turn.isdecimal() else _turn_named(turn, home)[1].turn_id
    turns = turn_store(find_home(home))
    found = wait_for(housekeeping.salvage(turns, turn_id))
    aside = f"{turns.place(turn_id)}/{found.event.aside}"
    if as_json:
        kept = {"kept_lines": found.kept, "set_aside_lines": found.event.lines}
        say_object({"turn_id": turn_id, "status": found.turn.status, "aside": aside} | kept)
        return
    stands = f"{found.turn.completed} has completed" if found.turn.completed else "nothing is done"
    say(f"turn {turn_id} is kept up to line {found.kept}: {stands}")
    note(f"set aside, {found.event.lines} lines: {aside}")
    for tool in dict.fromkeys(call.tool for call in found.event.calls):
        note(f"{one_line(redact_text(tool))} may have written in them: look whether it did")
    note(f"next: unified-flow resume {turn_id}")


def prune(
    older_than: Annotated[str, typer.Option("--older-than", help="12h, 30d, …")] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Delete old finished turns: answered, asked back, abandoned.

    Never one that an open intervention is about, that failed or was interrupted, nor the newest.

    \b
    unified-flow turns prune --older-than 30d --dry-run
    """
    from interventions.queue import queue_at
    from interventions.times import parse_duration, utc_now
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume import housekeeping
    from unified_flow.stores import turn_store

    age = parse_duration(older_than)
    if age is None:
        raise typer.BadParameter(f"{older_than!r} is no duration: 12h, 30d")
    turns, before = turn_store(find_home(home)), utc_now() - age
    keep = queue_at(home).turns_needed
    chosen = wait_for(housekeeping.prunable(turns, keep(), before))
    done = 0
    if not dry_run:
        done = wait_for(housekeeping.prune(turns, chosen, keep=keep, before=before))
    names = ", ".join(map(str, chosen)) or "none"
    said = f"would delete: {names}" if dry_run else f"deleted {done}: {names}"
    say_result(as_json, {"turns": chosen, "removed": done}, said)
