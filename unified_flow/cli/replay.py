"""`unified-flow replay`: a turn again, from its journal, without network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from interventions.cli.terminal import Code, note, say
from interventions.home import find_home
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.terminal import say_object

if TYPE_CHECKING:
    from unified_flow.engine.services import Services
    from unified_flow.resume.replay.replay import ReplayResult
    from unified_flow.turns.turn import Turn


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
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume.lookup import load_turn, turn_named
    from unified_flow.resume.replay.replay import replay as play
    from unified_flow.stores import turn_store
    from unified_flow.turns.archive import read_turn

    place = find_home(home)
    turn_id, _ = turn_named(place, name)
    turn = load_turn(place, turn_id)
    _, journal = wait_for(read_turn(turn_store(place), turn_id))
    with _services(turn, place) as services:
        replayed = play(journal, real=services)
    otherwise = list(dict.fromkeys(v.phase for v in replayed.visits if v.asked_otherwise))
    if as_json:
        phases = [{"name": v.phase, "same": v.same, "what": v.what} for v in replayed.visits]
        say_object(
            {
                "turn_id": turn_id,
                "same": replayed.same,
                "phases": phases,
                "asked_otherwise": otherwise,
            }
        )
    else:
        _show(turn_id, replayed, otherwise)
    raise typer.Exit(Code.DONE if replayed.same else Code.FAILED)


@contextmanager
def _services(turn: Turn, home: Path) -> Iterator[Services | None]:
    """What the turn would run on today; a replay can do without what is gone since."""
    import asyncio

    from unified_flow.errors import ConfigError, InputError
    from unified_flow.resume.lookup import flow_for

    try:
        flow = flow_for(turn, home)
    except (ConfigError, InputError) as exc:
        note(f"not compared with today's prompts: {one_line(str(exc))}")
        yield None
        return
    try:
        yield flow.services
    finally:
        asyncio.run(flow.aclose())


def _show(turn_id: int, replayed: ReplayResult, otherwise: list[str]) -> None:
    for visit in replayed.visits:
        say(f"{'=' if visit.same else '!'} {visit.phase:<17} {one_line(visit.what)}")
    if otherwise:
        note(f"prompts that changed: {', '.join(otherwise)} (recipe or code changed)")
    verdict = "the same result" if replayed.same else "NOT the same result"
    note(f"turn {turn_id} replayed: {verdict}")
