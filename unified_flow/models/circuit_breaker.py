"""A model whose calls end in time, and that is left alone while it keeps failing.

The circuit is a pure state machine; the time is an argument. closed: calls are made, and failures
are counted within a window. open: none is made for a while. half open: one call, the probe, is
made; it closes the circuit, or opens it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock
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


@dataclass(eq=False)
class Breaker:
    """A circuit that threads share. `refusal` makes the error of a call that is not made, of the
    last one that `counts` and the seconds until one may try."""

    rules: CircuitRules
    counts: Callable[[BaseException], bool]
    refusal: Callable[[BaseException, float], Exception]
    clock: Callable[[], float] = monotonic
    circuit: Circuit = Circuit()
    _lock: Lock = field(default_factory=Lock)
    _last: BaseException | None = None

    @contextmanager
    def guarding(self) -> Iterator[None]:
        with self._lock:
            self.circuit, wait_s = try_acquire(self.circuit, self.clock(), self.rules)
        if wait_s is not None and self._last is not None:
            raise self.refusal(self._last, wait_s)
        try:
            yield
        except BaseException as exc:
            with self._lock:
                if self.counts(exc):
                    self._last = exc
                    self.circuit = failed(self.circuit, self.clock(), self.rules)
                else:
                    self.circuit = released(self.circuit)
            raise
        with self._lock:
            self.circuit = succeeded(self.circuit)


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
        self.name = model.name
        self.timeout_s = timeout_s
        self.breaker = Breaker(rules, _counts, self._refusal, clock) if rules else None

    async def complete(self, call: ModelCall) -> ModelReply:
        """Raises GenerationTimeoutError, CircuitOpenError, and what the model raises."""
        with self.breaker.guarding() if self.breaker else nullcontext():
            deadline = asyncio.timeout(self.timeout_s)
            try:
                async with deadline:
                    return await self.model.complete(call)
            except Exception as exc:  # whatever a model makes of its cancellation
                if not deadline.expired():
                    raise
                raise GenerationTimeoutError(
                    f"{self.name} gave no complete reply in {self.timeout_s:g} s",
                    hint="Is it busy or still loading? Else raise graceful.generation_timeout_s.",
                ) from exc

    async def aclose(self) -> None:
        await self.model.aclose()

    def _refusal(self, last: BaseException, wait_s: float) -> CircuitOpenError:
        error = CircuitOpenError(
            f"{self.name} is not asked: it kept failing, last with {type(last).__name__}: {last}",
            retry_after_s=wait_s,
            hint="Mend that; once it answers a probe it is asked again (graceful.breaker).",
        )
        error.__cause__ = last
        return error


def _counts(error: BaseException) -> bool:
    """Whether a server is unwell: not one that is busy, nor a call that was cancelled."""
    is_busy = isinstance(error, httpx.HTTPStatusError) and error.response.status_code == 429
    return isinstance(error, Exception) and not is_busy
