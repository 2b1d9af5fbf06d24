"""The default policy: every failure halts the turn. No retry, no fallback."""

from __future__ import annotations

from unified_flow.policies import UNBOUNDED, Failure, Retry, Stop


class FailFast:
    name = "fail_fast"
    bounds = UNBOUNDED

    def again(self, failure: Failure) -> Retry | None:
        return None

    def ends(self, failure: Failure) -> Stop:
        return Stop("halt")
