"""Further tries of a phase, by tenacity: how many, after which waits, and the loop around them.

tenacity is imported by the first failure that is tried again, since most turns need no second try
(architecture/decisions, 7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unified_flow.errors import CircuitOpenError, PipelineTimeoutError
from unified_flow.policies import Failure
from unified_flow.policies.kinds import kind_of

if TYPE_CHECKING:
    from tenacity import RetryCallState

# What a server may ask for where the turn's time has no bound; an hour would be no retry.
LONGEST_WAIT_S = 60.0


@dataclass(frozen=True)
class Again:
    """The try `attempt` has failed with `said` (redacted), and the next comes in `after_s`."""

    attempt: int
    after_s: float
    said: str


def again_after_s(failure: Failure, *, attempts: int, first_s: float) -> float | None:
    """Seconds until the next of `attempts` tries in all: `first_s`, then twice as long each time,
    and never less than the server asks for. None if no try is left, or none would help, or it
    would come too late."""
    # Both may pass later, but not within this turn, which has no time left or knows it beforehand.
    hopeless = isinstance(failure.error, PipelineTimeoutError | CircuitOpenError)
    if hopeless or kind_of(failure.error) == "permanent":
        return None
    from tenacity import AsyncRetrying, RetryCallState, stop_after_attempt, wait_exponential

    state = RetryCallState(AsyncRetrying(), None, (), {})
    state.attempt_number = failure.attempt
    if stop_after_attempt(attempts)(state):
        return None
    wait_s = max(wait_exponential(multiplier=first_s)(state), failure.retry_after_s or 0.0)
    longest_s = LONGEST_WAIT_S if failure.left_s is None else failure.left_s
    return wait_s if wait_s < longest_s else None


async def go_on(
    first: Again,
    once: Callable[[], Awaitable[Again | None]],
    *,
    pause: Callable[[float], Awaitable[None]],
    tell: Callable[[int, str], None],
) -> None:
    """After `first`, `once` again and again until it says None or raises. `tell` hears of each
    failed try before the wait for the next."""
    from tenacity import AsyncRetrying, retry_if_result

    known: list[Again] = [first]

    async def next_try() -> Again | None:
        return known.pop() if known else await once()

    def tell_of(state: RetryCallState) -> None:
        again = _outcome(state)
        tell(again.attempt, again.said)

    await AsyncRetrying(
        retry=retry_if_result(lambda outcome: outcome is not None),
        wait=lambda state: _outcome(state).after_s,
        before_sleep=tell_of,
        sleep=pause,
    )(next_try)


def _outcome(state: RetryCallState) -> Again:
    assert state.outcome is not None
    again = state.outcome.result()
    assert isinstance(again, Again)
    return again
