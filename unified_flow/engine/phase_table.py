"""The phases' modules by name."""

from __future__ import annotations

from unified_flow.phases import (
    context_gatherer,
    coordinator,
    planner,
    query_analyzer,
    reflection,
    save,
    synthesis,
    validation,
)
from unified_flow.phases.context import Phase

PHASES: tuple[Phase, ...] = (
    query_analyzer,
    reflection,
    context_gatherer,
    planner,
    coordinator,
    synthesis,
    validation,
    save,
)
BY_NAME = {phase.NAME: phase for phase in PHASES}
