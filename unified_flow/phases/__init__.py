"""The eight phases, in their order. A phase is a module with four names (see `Phase`).

A phase reads the turn, asks for what it needs through the kit, and returns its section. It
catches nothing and knows neither the queue nor the terminal: one boundary does that for all.
"""

from __future__ import annotations

from typing import Any, Protocol

from unified_flow.errors import PhaseError
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
from unified_flow.running.kit import Kit
from unified_flow.turns.turn import Turn


class Phase(Protocol):
    """`ERROR` is raised when the phase fails, `SEVERITY` that of its intervention."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    @property
    def ERROR(self) -> type[PhaseError]: ...  # noqa: N802
    @property
    def SEVERITY(self) -> str: ...  # noqa: N802

    async def run(self, turn: Turn, kit: Kit) -> Any: ...


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
NAMES = tuple(phase.NAME for phase in PHASES)
BY_NAME = {phase.NAME: phase for phase in PHASES}
