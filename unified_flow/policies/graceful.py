"""Partial answers instead of none (graceful-degradation-adr.md): chosen for end users.

What the table of that document names degrades: the search, a model, the turn's time. Anything
else halts as under `fail_fast`, and so does a failed save, which costs nobody the answer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from unified_flow.config_tables import GracefulSettings
from unified_flow.errors import CircuitOpenError
from unified_flow.policies import Action, Bounds, Failure, Retry, Stop
from unified_flow.policies.kinds import kind_of

DEFAULT_RETRY_AFTER_S = 1.0


class Graceful:
    name = "graceful"

    def __init__(self, settings: GracefulSettings) -> None:
        self.settings = settings
        self.bounds = Bounds(
            search_s=settings.search_timeout_s,
            pipeline_s=settings.pipeline_timeout_s,
            searches_first=True,
        )

    def decide(self, failure: Failure) -> Action:
        if failure.scope == "other" or failure.phase == "save":
            return Stop("halt")
        return self._again(failure) or Stop("degrade", retry_after_s(failure.error))

    def _again(self, failure: Failure) -> Retry | None:
        """Another try, if there is hope and time for one; after the last, the other model."""
        second = self.settings.failover
        if failure.attempt <= self.settings.retries and kind_of(failure) != "permanent":
            pause = self.settings.backoff_s * 2 ** (failure.attempt - 1)
            pause = max(pause, retry_after_s(failure.error) or 0.0)
            if failure.left_s is None or pause < failure.left_s:
                return Retry(pause, failure.model if failure.model == second else None)
        if (
            second is not None
            and failure.scope == "model"
            and failure.model not in (None, second)
            and (failure.left_s is None or failure.left_s > 0)
        ):
            return Retry(0.0, second)
        return None


def retry_after_s(error: Exception, now: datetime | None = None) -> float | None:
    """Seconds until it makes sense to ask again; None if nobody has said so.

    A server that limits the rate without saying until when means a second.
    """
    if isinstance(error, CircuitOpenError):
        return error.retry_after_s
    if not isinstance(error, httpx.HTTPStatusError):
        return None
    if error.response.status_code != httpx.codes.TOO_MANY_REQUESTS:
        return None
    said = error.response.headers.get("retry-after", "").strip()
    if said.isdecimal() and said.isascii() and len(said) < 10:
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return DEFAULT_RETRY_AFTER_S
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
