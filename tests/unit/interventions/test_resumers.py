"""What can continue a turn: with the types of this package, or a plain function of any program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from interventions.errors import ConflictError, NoResumerError
from interventions.retry.contract import RetryFailedError, RetryRequest, StillOpenError
from interventions.retry.entry_points import retry
from interventions.retry.retries import retry_and_resolve

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


def plain(body: str) -> str:
    return f"class Mine:\n    def resume(self, turn_id, home, **options):\n        {body}\n"


def test_a_typed_one_gets_the_request_and_says_how_it_went(home: Path, install: Install) -> None:
    install(TYPED)
    request = RetryRequest(2, "int_20260101_000000_aaaaaa", "mended", grant="once")
    result = retry(home, request)
    assert (home / "seen").read_text() == repr(request)
    assert (result.failed, result.failed_again, result.solved) == (True, False, False)
    with pytest.raises(RetryFailedError, match="boom") as again:
        retry(home, RetryRequest(1, None, "mended"))
    assert again.value.difference == ("now: boom",)


def test_a_plain_one_gets_only_the_options_that_were_used(home: Path, install: Install) -> None:
    install(plain("return {'status': 'done', 'options': options, 'from': 'planner'}"))
    result = retry(home, RetryRequest(2, "int_1", "mended", rerun_tools=True, answer=""))
    given = {"intervention_id": "int_1", "note": "mended", "by": None, "via": "library"}
    assert result.more["options"] == {**given, "rerun_tools": True}
    assert (result.status, result.resumed_at, result.solved) == ("done", "planner", True)
    assert result.as_dict()["options"] == result.more["options"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise OSError('still down')", "OSError: still down"),
        ("return {'status': 'failed'}", "it failed again"),
        ("return {'status': 'failed', 'error': 'the same'}", "the same"),
        ("return 'fine'", "answers a mapping, not str"),
    ],
)
def test_a_plain_one_that_failed(home: Path, install: Install, body: str, said: str) -> None:
    install(plain(body))
    with pytest.raises(RetryFailedError, match=said):
        retry(home, RetryRequest(2, None, "mended"))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return None", ""),
        ("return {'status': 'answered'}", ""),
        ("return {'waiting': 7}", "turn 7 waits for the same fix"),
        ("return {'passed': False}", "its phase has not completed"),
        ("return {'status': 'failed', 'passed': True, 'phase': 'save'}", "failed in save"),
    ],
)
def test_what_a_plain_one_says_decides_whether_the_entry_is_resolved(
    queue: InterventionQueue, make: Any, install: Install, body: str, why: str
) -> None:
    install(plain(body))
    name = queue.put(make(turn_id=3)).intervention_id or ""
    request = RetryRequest(3, name, "mended", by="ada")
    if why:
        with pytest.raises(StillOpenError, match=why):
            retry_and_resolve(queue, request)
    else:
        assert retry_and_resolve(queue, request).entry["resolution"] == "mended"
    assert bool(queue.find(name)["resolved_at"]) == (not why)


def test_what_is_no_resumer_is_named(home: Path, install: Install) -> None:
    install("Mine = object()\n")
    with pytest.raises(NoResumerError, match=r"neither retry\(home, request\) nor resume"):
        retry(home, RetryRequest(1, None, "mended"))


def test_an_entry_without_a_turn_is_refused(home: Path) -> None:
    with pytest.raises(ConflictError, match="int_1 belongs to no turn"):
        retry(home, RetryRequest(0, "int_1", "mended"))
