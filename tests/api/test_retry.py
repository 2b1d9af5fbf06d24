"""A turn that is retried over HTTP passes the guardrails like a new one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.answers import every_phase_by_model, journal_lines, script
from tests.api.service import Service, model_flags, serving, until
from tests.servers.model_server import ModelServer, hang, status

SETTINGS = '[serve]\nmax_turns = 1\nrate_limit = "off"\nshutdown_grace_s = 0\n'


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(script(synthesis=status(500))) as server:
        yield server


@pytest.fixture
def failed(tmp_path: Path, docs: Path, model: ModelServer) -> Iterator[Service]:
    home = tmp_path / "home"
    with serving(home, *model_flags(model.url), docs=docs, settings=SETTINGS) as service:
        assert service.ask(session_id="s1").status_code == 502
        yield service


def _retry(service: Service, **more: Any) -> httpx.Response:
    (waiting,) = service.triage("GET", "/interventions").json()["interventions"]
    return service.triage("POST", f"/interventions/{waiting['id']}/retry", json={}, **more)


def test_it_counts_among_the_turns_that_run_and_ends_with_its_client_or_the_service(
    failed: Service, model: ModelServer
) -> None:
    asked = len(model.requests)
    model.script = script(synthesis=hang())
    with pytest.raises(httpx.ReadTimeout):
        _retry(failed, timeout=1.0)
    until(lambda: failed.log[-1]["status"] == "interrupted", "who leaves does not end it")
    assert journal_lines(failed.home)[-1]["event"] == "turn_interrupted"
    assert failed.log[-1]["http"]["status"] == 499

    asked = len(model.requests)
    with ThreadPoolExecutor() as pool:
        held = pool.submit(_retry, failed)
        until(lambda: len(model.requests) > asked, "the model is not asked")
        assert failed.metric("unified_flow_running_turns") == 1
        refused = failed.ask()
        assert (refused.status_code, refused.json()["code"]) == (503, "INTERNAL_ERROR")
        failed.stop()
        told = held.result()
    assert (told.status_code, told.json()["code"]) == (503, "INTERNAL_ERROR")
    assert journal_lines(failed.home)[-1]["event"] == "turn_interrupted"
    line = failed.log[-1]
    assert line["request_id"] == told.headers["X-Request-ID"]
    assert (line["status"], line["http"]["status"]) == ("interrupted", 503)
    assert line["error"] is True, "what has a code is an error"
    assert "Traceback" not in (failed.home / "stderr.txt").read_text()


def test_why_it_is_refused_is_said(failed: Service, model: ModelServer) -> None:
    again = _retry(failed)
    assert (again.status_code, again.json()["message"]) == (409, "The turn failed again.")
    model.script = script()
    (waiting,) = failed.triage("GET", "/interventions").json()["interventions"]
    path = f"/interventions/{waiting['id']}/retry"
    stale = {"expected_version": waiting["version"] + 1}
    assert failed.triage("POST", path, json=stale).status_code == 409, "not what was looked at"
    mended = {"note": "mended", "by": "ada", "expected_version": waiting["version"]}
    assert failed.triage("POST", path, json=mended).json()["status"] == "answered"
    last = failed.triage("GET", f"/interventions/{waiting['id']}").json()["resolutions"][-1]
    assert (last["by"], last["verified"]) == ("ada", True)
    asked = len(model.requests)
    over = failed.triage("POST", path, json={})
    assert (over.status_code, len(model.requests)) == (409, asked), "nobody opened it again"
    assert failed.triage("POST", "/interventions/nothing/retry", json={}).status_code == 404


@every_phase_by_model
def test_the_list_is_in_the_order_of_the_command(failed: Service, model: ModelServer) -> None:
    """Severity first, and of two alike the newest."""
    for phase in ("validation", "planner", "reflection"):
        model.script = script(**{phase: status(500)})
        failed.ask(session_id="s1")
    found = failed.triage("GET", "/interventions").json()["interventions"]
    alike = [entry["created_at"] for entry in found if entry["severity"] == "high"]
    assert [entry["severity"] for entry in found] == sorted(
        (entry["severity"] for entry in found), key=("critical", "high", "medium").index
    )
    assert len(alike) > 1
    assert alike == sorted(alike, reverse=True)
