"""No visible message at all (silent-errors-and-guardrails.md): chosen for automated replies.

A model that fails in a way that may pass is asked up to three times; after that, and for any other
failure, nothing is said. A failed save costs nobody the answer, as under every policy.
"""

from __future__ import annotations

from unified_flow.policies import UNBOUNDED, Action, Failure, Retry, Stop
from unified_flow.policies.kinds import kind_of

MAX_RETRIES = 3
RETRY_DELAY_S = 2.0


class Silent:
    name = "silent"
    bounds = UNBOUNDED

    def decide(self, failure: Failure) -> Action:
        may_pass = failure.scope == "model" and kind_of(failure) != "permanent"
        if may_pass and failure.attempt < MAX_RETRIES:
            # 2 s, 4 s; 8 s would come next if there were more attempts.
            return Retry(RETRY_DELAY_S * 2 ** (failure.attempt - 1))
        return Stop("halt" if failure.phase == "save" else "silence")
