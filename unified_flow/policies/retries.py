"""Whether another attempt helps, and after how many seconds."""

from __future__ import annotations

from unified_flow.errors import CircuitOpenError, PipelineTimeoutError
from unified_flow.errors.kinds import kind_of
from unified_flow.policies import Failure

# The longest pause where the turn's time has no bound.
LONGEST_WAIT_S = 60.0


def retry_wait_s(failure: Failure, *, attempts: int, first_s: float) -> float | None:
    """Seconds before the next of `attempts` attempts in all: `first_s`, doubled each time, and
    never less than the server asks for. None if no attempt is left, none would help, or it would
    come too late."""
    # Neither passes within this turn: its time is up, or the circuit stays open longer.
    hopeless = isinstance(failure.error, PipelineTimeoutError | CircuitOpenError)
    if hopeless or failure.attempt >= attempts or kind_of(failure.error) == "permanent":
        return None
    doubled = 2.0 ** min(failure.attempt - 1, 60)  # far beyond any wait, and no overflow
    wait_s = max(first_s * doubled, failure.retry_after_s or 0.0)
    longest_s = LONGEST_WAIT_S if failure.left_s is None else failure.left_s
    return wait_s if wait_s < longest_s else None
