"""A model whose calls end in time, and that is left alone while it keeps failing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

import httpx

from unified_flow.errors import CircuitOpenError, GenerationTimeoutError
from unified_flow.models import Model, ModelCall, ModelReply
from unified_flow.models.circuit import Circuit, Rules, asked, failed, given_up, succeeded


class BoundedModel:
    """`timeout_s` bounds a call whatever the model's own time-out is; no `rules`, no breaker."""

    def __init__(
        self,
        model: Model,
        timeout_s: float,
        rules: Rules | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self.circuit = Circuit()
        self._rules = rules
        self._last: Exception | None = None
        self._clock = clock

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, call: ModelCall) -> ModelReply:
        """Raises GenerationTimeoutError, CircuitOpenError, and what the model raises."""
        self._ask_leave()
        deadline = asyncio.timeout(self.timeout_s)
        try:
            async with deadline:
                reply = await self.model.complete(call)
        except asyncio.CancelledError:
            self.circuit = given_up(self.circuit)
            raise
        except Exception as exc:  # whatever it is, it counts
            self._count(exc)
            if not deadline.expired():
                raise
            raise GenerationTimeoutError(
                f"{self.name} gave no complete reply in {self.timeout_s:g} s",
                hint="Is it busy or still loading? Else raise graceful.generation_timeout_s.",
            ) from exc
        self.circuit = succeeded(self.circuit)
        return reply

    async def aclose(self) -> None:
        await self.model.aclose()

    def _ask_leave(self) -> None:
        if self._rules is None:
            return
        self.circuit, wait_s = asked(self.circuit, self._clock(), self._rules)
        if wait_s is not None:
            raise CircuitOpenError(
                f"{self.name} is not asked: it failed {self._rules.failures} times"
                f" in {self._rules.window_s:g} s, last with {type(self._last).__name__}:"
                f" {self._last}",
                retry_after_s=wait_s,
                hint="Mend that; once it answers a probe it is asked again (graceful.breaker).",
            ) from self._last

    def _count(self, error: Exception) -> None:
        if self._rules is None:
            return
        if isinstance(error, httpx.HTTPStatusError) and error.response.status_code == 429:
            self.circuit = given_up(self.circuit)  # it is well, and busy
            return
        self._last = error
        self.circuit = failed(self.circuit, self._clock(), self._rules)
