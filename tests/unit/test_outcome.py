"""What a caller is told of an error: a pure function, the same for every face."""

from __future__ import annotations

import pytest

from unified_flow.config.tables import GracefulSettings
from unified_flow.engine.outcome import Outcome, outcome_of
from unified_flow.errors import ConfigError, InputError, NoTurnError, QueueFullError
from unified_flow.policies import FailFast, Graceful, Policy, Silent

LOUD = [FailFast(), Graceful(GracefulSettings())]
QUIET = Silent()
OUTSIDE = [
    (QueueFullError("full"), Outcome("unavailable")),
    (NoTurnError("no room"), Outcome("unavailable", unreported=True)),
    (ConfigError("no key"), Outcome("unexpected", unreported=True)),
    (InputError("there is no such folder", field="docs"), Outcome("unexpected", unreported=True)),
    (ZeroDivisionError(), Outcome("unexpected", unreported=True)),
]


@pytest.mark.parametrize("policy", [*LOUD, QUIET], ids=lambda policy: policy.name)
def test_what_the_caller_has_to_mend_is_said_and_nobody_else_hears_of_it(policy: Policy) -> None:
    assert outcome_of(InputError("empty"), policy, chosen=["query"]) == Outcome("refused")
    assert outcome_of(InputError("no folder", field="docs"), policy) == Outcome("refused")


@pytest.mark.parametrize(("error", "outcome"), OUTSIDE, ids=lambda x: type(x).__name__)
def test_what_goes_wrong_outside_every_phase(error: Exception, outcome: Outcome) -> None:
    assert [outcome_of(error, policy, chosen=["query"]) for policy in LOUD] == [outcome] * len(LOUD)
    quiet = Outcome(outcome.answer, silenced=True, unreported=outcome.unreported)
    assert outcome_of(error, QUIET, chosen=["query"]) == quiet
