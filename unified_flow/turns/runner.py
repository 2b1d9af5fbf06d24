"""Which process this is, as a turn's journal names it."""

from __future__ import annotations

import os

from interventions.closing.transitions import Actor
from unified_flow.turns.events import Runner


def this_process(by: str | None = None) -> Runner:
    actor = Actor.current(by=by)
    return Runner(user=actor.name, host=actor.host, pid=os.getpid())
