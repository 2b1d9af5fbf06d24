"""`unified-flow replay`: a turn again, from its journal, without network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from interventions.cli.terminal import Code, note, say
from interventions.home import find_home
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.terminal import say_object

if TYPE_CHECKING:
    from unified_flow.resume.replay.replay import ReplayResult


def replay(
    name: options.TurnOrIntervention,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Run a turn again on recorded answers, without network.

    Code, recipes and limits are today's, so it shows what a change of them does. Nothing is
    written to the home.

    \b
    unified-flow replay 12

    Exit codes: 0 the same result, 1 another one, 3 no such turn.
    """
    import asyncio

    from unified_flow.errors import ConfigError, InputError
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume.lookup import flow_for, load_turn, turn_named
    from unified_flow.resume.replay.replay import replay as play
    from unified_flow.stores import turn_store
    from unified_flow.turns.archive import read_turn

    place = find_home(home)
    turn_id, _ = turn_named(place, name)
    turn = load_turn(place, turn_id)
    _, journal = wait_for(read_turn(turn_store(place), turn_id))
    flow = None
    try:
        flow = flow_for(turn, place)
    except (ConfigError, InputError) as exc:  # a replay can do without what is gone since
        note(f"not compared with today's prompts: {one_line(str(exc))}")
    try:
        replayed = play(journal, real=flow.services if flow is not None else None)
    finally:
        if flow is not None:
            asyncio.run(flow.aclose())
    otherwise = list(dict.fromkeys(v.phase for v in replayed.visits if v.asked_otherwise))
    if as_json:
        phases = [{"name": v.phase, "same": v.same, "what": v.what} for v in replayed.visits]
        head = {"turn_id": turn_id, "same": replayed.same}
        say_object(head | {"phases": phases, "asked_otherwise": otherwise})
    else:
        _show(turn_id, replayed, otherwise)
    raise typer.Exit(Code.DONE if replayed.same else Code.FAILED)


def _show(turn_id: int, replayed: ReplayResult, otherwise: list[str]) -> None:
    for visit in replayed.visits:
        say(f"{'=' if visit.same else '!'} {visit.phase:<17} {one_line(visit.what)}")
    if otherwise:
        note(f"prompts that changed: {', '.join(otherwise)} (recipe or code changed)")
    verdict = "the same result" if replayed.same else "NOT the same result"
    note(f"turn {turn_id} replayed: {verdict}")
