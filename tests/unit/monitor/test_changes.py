"""One deed on several entries: what is a refusal, and what is a mistake of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from interventions.entry import Entry, complete
from interventions.errors import ConflictError, CorruptQueueError, StorageError
from interventions.retry.contract import FAILED, RetryResult, StillOpenError
from monitor.core.app_state import ChangeOutcome, InputError, apply

HOME = Path("/srv/flow")
ENTRIES = [
    complete({"id": f"int_1_{name * 6}", "created_at": "2026-01-01T00:00:00Z"}) for name in "abc"
]

AGAIN = RetryResult(3, FAILED, passed=False, message="KeyError: 5")


def _with(error: Exception) -> ChangeOutcome:
    """The second of three meets the error."""

    def change(entry: Entry) -> Entry:
        if entry is ENTRIES[1]:
            raise error
        return entry

    return apply("resolved", ENTRIES, change)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConflictError("bob was first", hint="look again"), "bob was first"),
        (InputError("yesterday is not in the future"), "yesterday is not in the future"),
        (StillOpenError(ENTRIES[1], AGAIN), "failed again: KeyError: 5"),
    ],
)
def test_one_that_is_refused_leaves_the_others(error: Exception, why: str) -> None:
    outcome = _with(error)
    assert outcome.done == (ENTRIES[0], ENTRIES[2])
    assert outcome.problems(5, HOME) == [f"bbbbbb: {why}"]


def test_the_command_that_mends_the_file_finds_this_home() -> None:
    corrupt = CorruptQueueError("CORRUPT: x", hint="run `interventions doctor`")
    said = _with(corrupt).problems(5, HOME)[0]
    assert said == f"bbbbbb: CORRUPT: x (run `interventions doctor --home {HOME}`)"


def test_after_trouble_with_the_file_the_rest_is_not_tried() -> None:
    outcome = _with(StorageError("the disk is full", hint="make room"))
    assert (outcome.done, outcome.not_tried) == ((ENTRIES[0],), (ENTRIES[2],))


@pytest.mark.parametrize("mistake", [AttributeError("x"), ValueError("x"), TypeError("x")])
def test_a_mistake_of_ours_is_no_refusal(mistake: Exception) -> None:
    with pytest.raises(type(mistake)):
        _with(mistake)
