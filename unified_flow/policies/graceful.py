"""Partial answers instead of none (graceful-degradation-adr.md): chosen for end users.

What the table of that document names degrades: the search, a model, the turn's time. Anything
else halts as under `fail_fast`, and so does a failed save, which does not cost the answer.
"""

from __future__ import annotations

from unified_flow.config.tables import GracefulSettings
from unified_flow.policies import Bounds, Failure, Retry, Stop, retry_wait_s


class Graceful:
    name = "graceful"

    def __init__(self, settings: GracefulSettings) -> None:
        self.settings = settings
        self.bounds = Bounds(
            search_s=settings.search_timeout_s,
            pipeline_s=settings.pipeline_timeout_s,
            searches_first=True,
        )

    def again(self, failure: Failure) -> Retry | None:
        """Another try, if there is hope and time for one; after the last, the other model."""
        if not _degrades(failure):
            return None
        second = self.settings.failover
        if self.settings.retries:
            tries, first_s = 1 + self.settings.retries, self.settings.backoff_s
            wait_s = retry_wait_s(failure, attempts=tries, first_s=first_s)
            if wait_s is not None:
                return Retry(wait_s, failure.model if failure.model == second else None)
        if (
            second is not None
            and failure.scope == "model"
            and failure.model not in (None, second)
            and (failure.left_s is None or failure.left_s > 0)
        ):
            return Retry(0.0, second)
        return None

    def ends(self, failure: Failure) -> Stop:
        return Stop("degrade" if _degrades(failure) else "halt")


def _degrades(failure: Failure) -> bool:
    return failure.scope != "other" and failure.phase != "save"
