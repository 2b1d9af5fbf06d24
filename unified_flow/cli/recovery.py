"""Turns that were cut off: reported, and let go on all together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from interventions.cli import options as queue_options
from interventions.cli.terminal import UsageError, note, say
from interventions.entry import short_id
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.plaintext import first_of
from unified_flow.cli import options
from unified_flow.cli.terminal import say_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unified_flow.engine.dead_turns import DeadTurn
    from unified_flow.engine.services import Services

ALL = "unified-flow turns recover --all"
SHOWN = 5


def note_dead_turns(services: Services) -> None:
    """Report turns whose process died before this command began, and say so."""
    from unified_flow.engine.dead_turns import report_dead_turns
    from unified_flow.lib.threads import wait_for

    try:
        dead = wait_for(report_dead_turns(services.turns, services.queue, services.query_log))
    except OSError:
        return  # no turn can begin, which says why
    if dead:
        note(f"warning: {described(dead)}")
        note(f"  to go on with what was cut off: {ALL}")


def described(dead: Sequence[DeadTurn]) -> str:
    numbers = [str(turn.turn_id) for turn in dead]
    names = sorted({short_id(turn.intervention_id) for turn in dead if turn.intervention_id})
    queued = f" (intervention {', '.join(names)})" if names else " (the queue has no room for it)"
    return f"the process died that ran turn {', '.join(first_of(numbers, SHOWN))}{queued}"


def recover(
    everything: Annotated[
        bool, Option("--all", help="Let all go on; one first, to see if it works.")
    ] = False,
    canary: queue_options.Canary = None,
    jobs: queue_options.Jobs = 4,
    note_text: options.NoteText = "",
    by: options.By = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Find the turns whose process died or was interrupted.

    A process that died is a failure: an intervention waits for a person. It is resolved, verified,
    once the phases that were cut off have completed.

    \b
    unified-flow turns recover
    unified-flow turns recover --all
    """
    from interventions.cli.retry import retry_turns
    from interventions.queue import queue_at
    from interventions.retry.contract import RetryRequest
    from unified_flow.engine.dead_turns import report_dead_turns
    from unified_flow.engine.telemetry.query_log import QueryLog
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive

    if canary is not None and not everything:
        raise UsageError("--canary says which of many turns goes first: use it with --all")
    place = find_home(home)
    archive, queue = turn_archive(place), queue_at(place)
    cut_off = wait_for(archive.cut_off())
    gone = [row["turn_id"] for row in cut_off]
    dead = wait_for(report_dead_turns(archive.store, queue, QueryLog.of(place), among=gone))
    if dead and not as_json:
        note(described(dead))
    if not cut_off:
        if everything and canary is not None:
            raise NotFoundError("no turn was cut off")
        say_object({"turns": []}) if as_json else note("no turn was cut off")
    elif everything:
        retry_turns(
            dict.fromkeys(gone),
            place,
            RetryRequest(
                0, None, note_text or "the turns that were cut off went on", by=by, via="cli"
            ),
            canary=canary,
            jobs=jobs,
            again=lambda: ALL,
            view={} if as_json else None,
        )
    elif as_json:
        say_object({"turns": cut_off})
    else:
        for row in cut_off:
            say(f"{row['turn_id']:>6}  cut off in {row['stopped_in'] or 'no phase'}")
        note(f"next: {ALL}")
