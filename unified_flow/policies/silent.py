"""No visible message at all (silent-errors-and-guardrails.md): chosen for automated replies.

A model whose failure may pass is asked up to three times, an unusable reply included ("an error of
the model that may be temporary"); after that, and for any other failure, the user gets no message.
A failed save does not cost the answer, as under every policy.
"""

from __future__ import annotations

from unified_flow.policies import UNBOUNDED, Failure, Retry, Stop, retry_wait_s

MAX_ATTEMPTS = 3
RETRY_DELAY_S = 2.0


class Silent:
    name = "silent"
    bounds = UNBOUNDED

    def again(self, failure: Failure) -> Retry | None:
        if failure.scope != "model":
            return None
        # 2 s, 4 s; 8 s would come next if there were more attempts.
        wait_s = retry_wait_s(failure, attempts=MAX_ATTEMPTS, first_s=RETRY_DELAY_S)
        return Retry(wait_s) if wait_s is not None else None

    def ends(self, failure: Failure) -> Stop:
        return Stop("halt" if failure.phase == "save" else "silence")
