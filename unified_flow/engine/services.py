"""What the turns of one process share, made once from the settings (`wiring.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions import InterventionQueue
from unified_flow.config.settings import Settings
from unified_flow.engine.telemetry.query_log import QueryLog
from unified_flow.errors import RecipeError
from unified_flow.guardrails.guardrails import Guardrails
from unified_flow.models.registry import ModelRegistry
from unified_flow.phases import recipe
from unified_flow.phases.recipe import Recipe
from unified_flow.policies import Policy
from unified_flow.retrieval.documents import Documents
from unified_flow.tools.permission_gate import PermissionGate
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.memory import MemoryStore
from unified_flow.turns.sessions import Sessions
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:  # the extra `otel`
    from unified_flow.engine.telemetry.spans import Traces


class Dispatcher:
    """Asked whenever a turn begins or goes on, once its journal says so. This one has the turn run
    here; one that has another process run it closes the ledger first."""

    runs_here = True
    stopping = False

    async def run(self, ledger: Ledger, here: Callable[[], Awaitable[Turn]]) -> Turn:
        """The turn, once it has stopped; `here` runs it in this process. Raises the phase's
        PhaseError, wherever it ran (`phase_error` in outcome.py)."""
        return await here()

    def close(self) -> None: ...


@dataclass(frozen=True)
class Services:
    """`asked_with`: the settings that were given rather than configured (events.TurnStarted).
    `pause` waits some seconds before another attempt. `reporting` has the turns of the
    failures that are on their way into the queue."""

    home: Path
    settings: Settings
    config_digest: str
    turns: TurnStore
    models: ModelRegistry
    toolbox: Toolbox
    gate: PermissionGate
    documents: Documents | None
    sessions: Sessions
    memory: MemoryStore
    queue: InterventionQueue
    refuse_when_full: bool
    query_log: QueryLog
    policy: Policy
    asked_with: dict[str, Any]
    guardrails: Guardrails
    dispatcher: Dispatcher = field(default_factory=Dispatcher)
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    traces: Traces | None = None
    reporting: dict[asyncio.Task[Any], int] = field(default_factory=dict)

    @cached_property
    def recipes(self) -> Path:
        """Where the project's own recipes are, if it has any."""
        return self.settings.recipes or self.home / "recipes"

    def _own_recipes(self) -> Path | None:
        own = self.recipes if self.recipes.is_dir() else None
        if own is None and self.settings.recipes is not None:
            raise RecipeError(
                f"{self.recipes}:1: there is no such folder of recipes",
                hint="mend the setting `recipes`",
            )
        return own

    def recipe(self, phase: str) -> Recipe:
        return self.recipe_reader()(phase)

    def recipe_reader(self) -> Callable[[str], Recipe]:
        """Gives each phase's recipe as it first read it. It raises RecipeError if the folder that
        the settings name is not there, and for one that cannot be read."""
        if self.settings.recipes is None and not self.recipes.is_dir():
            return self._packaged_recipes  # which do not change while a process runs
        return self._reader(cache(self._own_recipes))

    @cached_property
    def _packaged_recipes(self) -> Callable[[str], Recipe]:
        return self._reader(lambda: None)

    def _reader(self, own: Callable[[], Path | None]) -> Callable[[str], Recipe]:
        @cache
        def read(phase: str) -> Recipe:
            found = recipe.load(phase, own())
            is_small = self.models.is_small(found.head)
            return recipe.load(phase, own(), small=True) if is_small else found

        return read

    async def aclose(self) -> None:
        self.dispatcher.close()
        await self.toolbox.aclose()
        await self.models.aclose()
        await self.guardrails.aclose()
        self.sessions.close()
        if self.documents is not None:
            self.documents.close()
        if self.traces is not None:
            await asyncio.to_thread(self.traces.close)
