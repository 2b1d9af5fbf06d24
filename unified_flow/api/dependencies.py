"""What the routes depend on: one state for the life of the app, one exchange for each request."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from fastapi import Depends, Request

from unified_flow.api.access import SessionIds
from unified_flow.api.http_exchange import HttpExchange
from unified_flow.api.metrics import Metrics
from unified_flow.api.readiness import Readiness
from unified_flow.api.running_turns import Progress, RunningTurns
from unified_flow.engine.services import Services
from unified_flow.flow import UnifiedFlow


@dataclass(frozen=True)
class AppState:
    flow: UnifiedFlow
    running: RunningTurns
    metrics: Metrics
    readiness: Readiness
    progress: Progress

    @property
    def services(self) -> Services:
        return self.flow.services

    @cached_property
    def session_ids(self) -> SessionIds:
        """Made when first asked for, so that a service without them needs no file, nor room for
        one, to start. Raises ConfigError."""
        return SessionIds(self.services.home)


# All are coroutines: FastAPI runs a plain function in a thread, which costs more than these do.
async def app_state(request: Request) -> AppState:
    state: AppState = request.app.state.shared
    return state


async def current_exchange(request: Request) -> HttpExchange:
    exchange: HttpExchange = request.state.exchange
    return exchange


StateDep = Annotated[AppState, Depends(app_state)]
ExchangeDep = Annotated[HttpExchange, Depends(current_exchange)]
