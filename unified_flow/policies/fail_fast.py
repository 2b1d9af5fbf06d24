"""The default policy: every failure halts the turn. No retry, no fallback."""

from __future__ import annotations

from unified_flow.policies import UNBOUNDED, Action, Failure, Stop


class FailFast:
    name = "fail_fast"
    bounds = UNBOUNDED

    def decide(self, failure: Failure) -> Action:
        return Stop("halt")
