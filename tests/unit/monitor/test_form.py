"""What a form goes through, from the first letter typed to what came of it."""

from __future__ import annotations

import pytest

from interventions.entry import complete
from monitor.core.app_state import ChangeOutcome, Refusal
from monitor.forms.form import FormState, Stage

FIRST, SECOND = (
    complete({"id": f"int_1_{name * 6}", "created_at": "2026-01-01T00:00:00Z"}) for name in "ab"
)
DONE = (FIRST,)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Stage.EDITING, Stage.CLOSED),
        (Stage.REFUSED, Stage.CLOSED),
        (Stage.RUNNING, Stage.STOPPING),
        (Stage.STOPPING, Stage.CLOSED),
        (Stage.CLOSED, Stage.CLOSED),
    ],
)
def test_cancel(before: Stage, after: Stage) -> None:
    assert FormState(before, DONE).cancel() == FormState(after, DONE)


@pytest.mark.parametrize("stage", [Stage.EDITING, Stage.RUNNING, Stage.REFUSED])
def test_until_it_is_cancelled_it_begins_another(stage: Stage) -> None:
    assert not FormState(stage).stops


def test_a_form_that_was_left_begins_no_other() -> None:
    stopping = FormState().start().cancel()
    left = stopping.cancel()
    assert stopping.stops
    assert left.stops
    assert left.finish(ChangeOutcome("resolved", (SECOND,))) == left


def test_what_was_done_adds_up_over_the_tries() -> None:
    conflict = Refusal(SECOND, "somebody was first", now=SECOND)
    refused = FormState().start().finish(ChangeOutcome("resolved", DONE, (conflict,)))
    assert refused == FormState(Stage.REFUSED, DONE, {SECOND["id"]: SECOND})
    again = refused.start().finish(ChangeOutcome("resolved", (FIRST, SECOND)))
    assert again == FormState(Stage.CLOSED, (FIRST, SECOND))
