"""A model whose calls end in time, and that is left alone while it keeps failing.

The circuit is a pure state machine; the time is an argument. closed: calls are made, and failures
are counted within a window. open: none is made for a while. half open: one call, the probe, is
made; it closes the circuit, or opens it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

import httpx

from unified_flow.errors import CircuitOpenError, GenerationTimeoutError
from unified_flow.models import Model, ModelCall, ModelReply


@dataclass(frozen=True)
class CircuitRules:
    """`failures` within `window_s` seconds open the circuit, for `open_s` seconds."""

    failures: int = 5
    window_s: float = 60.0
    open_s: float = 30.0


@dataclass(frozen=True)
class Circuit:
    """`failed_at` are the failures that count, oldest first; times are seconds of one clock."""

    failed_at: tuple[float, ...] = ()
    opened_at: float | None = None
    probing: bool = False


def try_acquire(circuit: Circuit, now: float, rules: CircuitRules) -> tuple[Circuit, float | None]:
    """May a call be made? None: yes. Else the seconds until one may be tried."""
    if circuit.opened_at is None:
        return circuit, None
    left = circuit.opened_at + rules.open_s - now
    if left > 0:
        return circuit, left
    if circuit.probing:
        return circuit, rules.open_s  # until the probe is back, nobody knows
    return replace(circuit, probing=True), None


def succeeded(circuit: Circuit) -> Circuit:
    """A reply closes the circuit, unless its call began before the circuit opened."""
    if circuit.opened_at is None or circuit.probing:
        return Circuit(failed_at=circuit.failed_at if circuit.opened_at is None else ())
    return circuit


def failed(circuit: Circuit, now: float, rules: CircuitRules) -> Circuit:
    if circuit.probing:
        return Circuit(opened_at=now)
    if circuit.opened_at is not None:
        return circuit
    recent = (*(at for at in circuit.failed_at if now - at < rules.window_s), now)
    if len(recent) >= rules.failures:
        return Circuit(opened_at=now)
    return Circuit(failed_at=recent)


def released(circuit: Circuit) -> Circuit:
    """The call ended without a verdict on the server: the next one probes."""
    return replace(circuit, probing=False)


class BoundedModel:
    """`timeout_s` bounds a call whatever the model's own time-out is; no `rules`, no breaker."""

    def __init__(
        self,
        model: Model,
        timeout_s: float,
        rules: CircuitRules | None = None,
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
        self._acquire()
        deadline = asyncio.timeout(self.timeout_s)
        try:
            async with deadline:
                reply = await self.model.complete(call)
        except asyncio.CancelledError:
            self.circuit = released(self.circuit)
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

    def _acquire(self) -> None:
        if self._rules is None:
            return
        self.circuit, wait_s = try_acquire(self.circuit, self._clock(), self._rules)
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
            self.circuit = released(self.circuit)  # it is well, and busy
            return
        self._last = error
        self.circuit = failed(self.circuit, self._clock(), self._rules)
