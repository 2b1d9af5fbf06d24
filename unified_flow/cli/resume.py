"""`unified-flow resume`: after the cause is mended, the same turn goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from typer import Option

from interventions.cli import options as queue_options
from interventions.cli.terminal import Code, note
from interventions.home import find_home
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.exits import refused_as_json
from unified_flow.cli.terminal import on_terminal, say_object

if TYPE_CHECKING:
    from unified_flow.flow import UnifiedFlow
    from unified_flow.resume.human_input import ResumeRequest
    from unified_flow.resume.resumption import ResumeResult
    from unified_flow.turns.events import Observed, TurnResumed


def resume(
    name: options.TurnOrIntervention = "",
    from_phase: queue_options.FromPhase = None,
    rerun_tools: queue_options.RerunTools = False,
    tools_done: queue_options.ToolsDone = False,
    edit: queue_options.Edit = False,
    note_text: options.NoteText = "",
    grant: queue_options.Grant = None,
    by: options.By = None,
    interrupted: Annotated[
        bool, Option("--interrupted", help="The same as: unified-flow turns recover --all.")
    ] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
    **chosen: Unpack[options.TurnOptions],
) -> None:
    """Let a turn go on from the phase that failed or stopped.

    With --from, an answered turn stays as it is, and a fork of it goes on: a new turn.

    Completed phases and tool calls are not run again. The rest runs with today's code and
    configuration, and with the options that the question was asked with; give them again to
    change them. The intervention is resolved, verified, once its phase has completed.

    \b
    unified-flow resume 12
    unified-flow resume a1b2c3 --note "server restarted"
    unified-flow resume 12 --from planner
    unified-flow resume 12 --grant session

    Exit codes: 0 answered (or silent, as the policy wants it), 1 a phase failed, 2 nothing is left
    to do (or not from there), 3 no such turn, 4 a phase failed and could not be queued, 5 it is
    being resumed elsewhere.
    """
    if bool(name) == interrupted:
        raise typer.BadParameter("name a turn or an intervention, or give --interrupted")
    if interrupted:
        if any([from_phase, rerun_tools, tools_done, edit, grant, *chosen.values()]):
            raise typer.BadParameter("only --note, --by, --json and --home go with --interrupted")
        from unified_flow.cli.recovery import recover

        recover(True, note_text=note_text, by=by, as_json=as_json, home=home)
        return
    with refused_as_json(as_json):
        import asyncio

        from interventions.cli.retry import ask, edit_text
        from interventions.cli.terminal import is_asked
        from unified_flow.cli.permission_question import terminal_asker
        from unified_flow.engine.telemetry.logs import logged
        from unified_flow.resume.human_input import ResumeRequest, ask_person
        from unified_flow.resume.lookup import flow_for, load_turn, turn_named
        from unified_flow.stores import missing_worker

        place = find_home(home)
        turn_id, intervention_id = turn_named(place, name)
        allowing = None if as_json else terminal_asker()
        wanted = ResumeRequest(
            from_phase=from_phase,
            rerun_tools=rerun_tools,
            tools_done=tools_done,
            intervention_id=intervention_id,
            note=note_text or "the turn was resumed and got past the phase",
            answer=note_text or None,
            grant=grant,
            by=by,
            via="cli",
        )
        turn = load_turn(place, turn_id)
        flow = flow_for(turn, place, asker=allowing, **chosen)
        asked, editor = ask if is_asked() else None, edit_text if edit else None
        wanted = ask_person(wanted, turn, flow.services, ask=asked, edit=editor)
        if waits := missing_worker(place):
            note(waits)
        try:
            with logged(place):
                code = asyncio.run(_resume(flow, turn_id, wanted, as_json, home))
        except KeyboardInterrupt:
            note(f"interrupted; to go on: unified-flow resume {turn_id}")
            raise
    raise typer.Exit(code)


async def _resume(
    flow: UnifiedFlow, turn_id: int, wanted: ResumeRequest, as_json: bool, home: Path | None
) -> Code:
    from unified_flow.cli.live import phases_shown
    from unified_flow.cli.outcome import exit_code, of_turn, show_resumed
    from unified_flow.resume.resumption import resume_turn
    from unified_flow.turns.events import TurnResumed, TurnStarted

    goes_on = turn_id

    def announce(event: Observed) -> None:
        nonlocal goes_on
        if isinstance(event, TurnStarted):
            note(f"turn {event.fork_of} stays as it is; turn {event.turn_id} is its fork")
            goes_on = event.turn_id
        elif isinstance(event, TurnResumed):
            _announce(goes_on, event)

    async with flow:
        with phases_shown(not as_json and on_terminal(), None if as_json else announce) as observer:
            resumed = await resume_turn(flow, turn_id, wanted, observer=observer)
    if as_json:
        say_object(of_turn(resumed.turn, resumed.error) | _more(resumed))
    else:
        show_resumed(resumed, home)
    return exit_code(resumed.turn, resumed.error)


def _announce(turn_id: int, event: TurnResumed) -> None:
    again = ", dropping what it and the phases after it had found" if event.rewound else ""
    note(f"turn {turn_id} goes on at {event.phase}{again}")
    if event.edited:
        note(f"edited: {', '.join(event.edited)}")
    changed = "; ".join(event.changed) or "nothing that is recorded"
    note(f"changed since it stopped: {one_line(changed)}")


def _more(resumed: ResumeResult) -> dict[str, object]:
    return {
        "resumed_at": resumed.event.phase,
        "changed": resumed.event.changed,
        "passed": resumed.passed,
        "resolved": resumed.closed,
        "difference": resumed.difference,
    }
