"""A circuit breaker as a state machine: pure, and told the time by whoever asks it.

closed: calls are made, and failures are counted within a window. open: none is made for a while.
half open: one call, the probe, is made; it closes the circuit, or opens it anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True)
class Rules:
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

    @property
    def state(self) -> State:
        if self.opened_at is None:
            return "closed"
        return "half_open" if self.probing else "open"


def asked(circuit: Circuit, now: float, rules: Rules) -> tuple[Circuit, float | None]:
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
    """A reply closes the circuit; one of a call made before it opened tells nothing new."""
    if circuit.opened_at is None or circuit.probing:
        return Circuit(failed_at=circuit.failed_at if circuit.opened_at is None else ())
    return circuit


def failed(circuit: Circuit, now: float, rules: Rules) -> Circuit:
    if circuit.probing:
        return Circuit(opened_at=now)
    if circuit.opened_at is not None:
        return circuit
    recent = (*(at for at in circuit.failed_at if now - at < rules.window_s), now)
    if len(recent) >= rules.failures:
        return Circuit(opened_at=now)
    return Circuit(failed_at=recent)


def given_up(circuit: Circuit) -> Circuit:
    """Whoever asked did not wait for the reply: the next one probes."""
    return replace(circuit, probing=False)
