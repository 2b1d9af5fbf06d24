"""What can continue a turn: whatever an installed program registers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from interventions.errors import ConflictError, NoResumerError
from interventions.retry.contract import RetryRequest, StillOpenError, find_resumer
from interventions.retry.retries import retry, retry_entry

Install = Callable[[str], None]

TYPED = """
from interventions.retry.contract import RetryResult

class Mine:
    def retry(self, home, request):
        (home / "seen").write_text(repr(request))
        return RetryResult(request.turn_id, "failed", passed=request.turn_id == 2, phase="save",
                           message="boom", difference=("now: boom",), intervention_id="int_1_a")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes the source an installed package, whose `Mine` is the resumer."""

    def installed(source: str) -> None:
        name = f"fake_{tmp_path.name.replace('-', '_')}"
        info = tmp_path / "site" / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[interventions.resumers]\nfake = {name}:Mine\n")
        (info.parent / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(str(info.parent))

    return installed


def answering(body: str) -> str:
    return (
        "from interventions.retry.contract import RetryResult\n"
        f"class Mine:\n    def retry(self, home, request):\n        {body}\n"
    )


def test_a_typed_one_gets_the_request_and_says_how_it_went(home: Path, install: Install) -> None:
    install(TYPED)
    request = RetryRequest(2, "int_20260101_000000_aaaaaa", "mended", grant="once")
    result = retry(home, request, find_resumer())
    assert (home / "seen").read_text() == repr(request)
    assert (result.failed, result.failed_again, result.solved) == (True, False, False)
    again = retry(home, RetryRequest(1, None, "mended"), find_resumer())
    assert (again.failed_again, again.message, list(again.difference)) == (
        True,
        "boom",
        ["now: boom"],
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise OSError('still down')", "OSError: still down"),
        ("return RetryResult(2, 'failed', passed=False)", "it failed again"),
        ("return RetryResult(2, 'failed', passed=False, message='the same')", "the same"),
        ("return 'fine'", "answers a RetryResult, not str"),
    ],
)
def test_one_that_failed(home: Path, install: Install, body: str, said: str) -> None:
    install(answering(body))
    result = retry(home, RetryRequest(2, None, "mended"), find_resumer())
    assert result.failed_again
    assert said in (result.message or "")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return RetryResult(3)", ""),
        ("return RetryResult(3, 'answered')", ""),
        ("return RetryResult(3, waiting=7)", "turn 7 waits, too"),
        ("return RetryResult(3, passed=False)", "its phase has not completed"),
        ("return RetryResult(3, 'failed', phase='save')", "failed in save"),
    ],
)
def test_what_it_says_decides_whether_the_entry_is_resolved(
    queue: InterventionQueue, make: Any, install: Install, body: str, why: str
) -> None:
    install(answering(body))
    name = queue.put(make(turn_id=3)).intervention_id or ""
    after, result = retry_entry(queue, RetryRequest(3, name, "mended", by="ada"))
    if why:
        assert why in str(StillOpenError(after, result))
    else:
        (row,) = after["resolutions"]
        assert (row["note"], row["by"], row["verified"]) == ("mended", "ada", True)
    assert queue.find(name) == after
    assert bool(after["resolved_at"]) == (not why)


def test_what_is_no_resumer_is_named(home: Path, install: Install) -> None:
    install("Mine = object()\n")
    with pytest.raises(NoResumerError, match=r"has no retry\(home, request\)"):
        retry(home, RetryRequest(1, None, "mended"), find_resumer())


def test_an_entry_without_a_turn_is_refused(home: Path) -> None:
    with pytest.raises(ConflictError, match="int_1 belongs to no turn"):
        retry(home, RetryRequest(0, "int_1", "mended"), find_resumer())
