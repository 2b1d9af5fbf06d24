"""`unified-flow turns`: what was asked, and how far each turn came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from interventions.cli.terminal import note, say
from interventions.plaintext import clean
from interventions.secrets.redaction import redact, redact_text
from unified_flow.cli import options
from unified_flow.cli.completing import turn_numbers
from unified_flow.cli.screen import beginning, on_terminal

if TYPE_CHECKING:
    from unified_flow.turns.turn import Turn


def list_turns(
    session: Annotated[str | None, typer.Option(help="Only this session's.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most, newest first.")] = 20,
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
    from unified_flow.turns.archive import TurnArchive

    archive = TurnArchive.of(home)
    turns, damaged = archive.latest(limit, session, interrupted=interrupted)
    for problem in damaged:
        note(f"skipped: {problem}")
    rows = [_row(turn) for turn in turns]
    if as_json:
        say(json.dumps({"turns": rows}, ensure_ascii=False))
    elif as_jsonl:
        for row in rows:
            say(json.dumps(row, ensure_ascii=False))
    elif not rows and not damaged:
        none_yet = "no turns yet: unified-flow ask '…' --docs FOLDER"
        note("no turn was interrupted" if interrupted else none_yet)
    else:
        _table(turns)


def show_turn(
    turn: Annotated[
        str,
        typer.Argument(help="The turn's number, or its request id.", autocompletion=turn_numbers),
    ],
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """One turn, section by section, as far as it came.

    \b
    unified-flow turns show 12
    """
    from unified_flow.errors.turns import NoSuchTurnError
    from unified_flow.turns.archive import MAX_DIGITS, TurnArchive

    archive = TurnArchive.of(home)
    found = archive.find(turn)
    if found is None:
        if turn.isdecimal() and len(turn) <= MAX_DIGITS:
            raise archive.no_such_turn(int(turn))
        raise NoSuchTurnError(
            f"there is no turn {turn} in {archive.folders.root}",
            hint="the turns: unified-flow turns list",
        )
    if as_json:
        from unified_flow.turns.sections import written

        whole = _row(found) | {
            "response": found.response,
            "sections": written(found.sections),
            "phases": found.phases,
        }
        say(json.dumps(redact(whole), ensure_ascii=False))
    else:
        from unified_flow.turns.passage import public_text

        say(clean(public_text(archive.page(found.turn_id))))


def _row(turn: Turn) -> dict[str, object]:
    from unified_flow.turns.events import stamp

    return {
        "turn_id": turn.turn_id,
        "status": turn.status,
        "session_id": turn.session_id,
        "request_id": turn.request_id,
        "question": redact_text(turn.question),
        "started_at": stamp(turn.started_at) if turn.started_at else None,
        "duration_ms": turn.duration_ms,
        "saved": turn.saved,
        "resumed": turn.resumed,
        "failed_phase": turn.failure.phase if turn.failure else None,
        "intervention_id": turn.failure.intervention_id if turn.failure else None,
    }


def _table(turns: list[Turn]) -> None:
    import shutil

    width = shutil.get_terminal_size((100, 24)).columns if on_terminal() else 200
    for turn in turns:
        started = f"{turn.started_at:%m-%d %H:%M}" if turn.started_at else ""
        where = f" at {turn.failure.phase}" if turn.failure else ""
        if turn.status == "interrupted" and turn.visits:
            where = f" in {turn.visits[-1].phase}"
        if turn.resumed:
            where += ", resumed"
        head = f"{turn.turn_id:>6}  {started}  {turn.status + where:<26} "
        say(head + beginning(redact_text(turn.question), max(20, width - len(head))))
