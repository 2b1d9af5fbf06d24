"""What a form goes through, from the first letter typed to what came of it."""

from __future__ import annotations

import pytest

from interventions.entry import complete
from monitor.core.form_state import (
    Closed,
    Editing,
    Refused,
    State,
    Working,
    begin,
    came,
    cancel,
    stopping,
)

FIRST, SECOND = (
    complete({"id": f"int_1_{name * 6}", "created_at": "2026-01-01T00:00:00Z"}) for name in "ab"
)


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (Editing(), Closed()),
        (Refused((FIRST,)), Closed((FIRST,))),
        (Working((FIRST,)), Working((FIRST,), stopping=True)),
        (Working((FIRST,), stopping=True), Closed((FIRST,), left=True)),
        (Closed((FIRST,), left=True), Closed((FIRST,), left=True)),
    ],
)
def test_cancel(state: State, after: State) -> None:
    assert cancel(state) == after


@pytest.mark.parametrize("state", [Editing(), Working(), Refused()])
def test_until_it_is_told_to_stop_it_goes_on(state: State) -> None:
    assert not stopping(state)


def test_a_form_that_was_left_goes_on_stopping() -> None:
    left = cancel(cancel(Working()))
    assert stopping(cancel(Working()))
    assert stopping(left)
    assert came(left, [SECOND], well=False, newer={}) == left


def test_what_was_done_adds_up_over_the_tries() -> None:
    refused = came(begin(Editing()), [FIRST], well=False, newer={SECOND["id"]: SECOND})
    assert refused == Refused((FIRST,), {SECOND["id"]: SECOND})
    assert isinstance(refused, Refused)
    again = came(begin(refused), [FIRST, SECOND], well=True, newer={})
    assert again == Closed((FIRST, SECOND))
