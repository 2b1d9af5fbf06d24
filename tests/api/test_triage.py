"""What is triaged over HTTP, and what the metrics say of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answers import script
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import ModelServer, status
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.lookup import flow_for, load_turn
from unified_flow.resume.resumption import resume_turn


@pytest.fixture
def failing(folder: Path, docs: Path) -> Iterator[Service]:
    with (
        ModelServer(script(synthesis=status(500))) as model,
        serving(
            folder, *model_flags(model.url), docs=docs, settings='[serve]\nrate_limit = "off"\n'
        ) as service,
    ):
        assert service.ask(session_id="s1").status_code == 502
        model.script = script()
        yield service


def test_triage_over_http(failing: Service) -> None:
    (waiting,) = failing.triage("GET", "/interventions").json()["interventions"]
    assert (waiting["phase"], waiting["state"], waiting["severity"]) == (
        "synthesis",
        "open",
        "high",
    )
    path = f"/interventions/{waiting['id']}"
    assert failing.triage("GET", path).json()["error_category"] == "llm_error"
    assert failing.triage("GET", "/interventions/health").json()["unresolved"] == 1
    assert failing.triage("GET", "/interventions/nothing").status_code == 404

    snoozed = failing.triage("POST", f"{path}/snooze", json={"duration": "4h", "by": "ada"})
    assert snoozed.json()["state"] == "snoozed"
    assert failing.triage("POST", f"{path}/undo", json={}).json()["state"] == "open"
    owned = failing.triage("POST", f"{path}/assign", json={"owner": "ada"}).json()
    assert owned["owner"] == "ada"
    stale = {"note": "x", "expected_version": waiting["version"]}
    assert failing.triage("POST", f"{path}/resolve", json=stale).status_code == 409
    done = failing.triage("POST", f"{path}/resolve", json={"note": "a fix", "by": "ada"}).json()
    assert (done["state"], done["resolution"]) == ("resolved", "a fix")
    assert failing.triage("POST", f"{path}/resolve", json={"note": "x"}).status_code == 409
    assert failing.triage("POST", f"{path}/reopen", json={}).json()["state"] == "open"
    assert failing.triage("POST", f"{path}/dismiss", json={}).json()["state"] == "dismissed"
    did = [
        (line["action"], line["by"], line["via"])
        for line in failing.triage("GET", f"{path}/journal").json()
    ]
    assert did[0] == ("snooze", "ada", "http")
    assert [action for action, _, _ in did] == [
        "snooze",
        "undo",
        "assign",
        "resolve",
        "reopen",
        "dismiss",
    ]


def test_a_turn_is_retried_from_the_phase_that_failed(failing: Service) -> None:
    (waiting,) = failing.triage("GET", "/interventions").json()["interventions"]
    path = f"/interventions/{waiting['id']}"
    again = failing.triage("POST", f"{path}/retry", json={"by": "ada"})
    assert again.json()["status"] == "answered"
    assert failing.triage("GET", path).json()["state"] == "resolved"
    assert failing.triage("GET", f"{path}/journal").json()[-1]["by"] == "ada"
    turn = failing.triage("GET", f"/turns/{waiting['turn_id']}").json()
    assert turn["status"] == "answered"
    assert turn["response"]
    assert failing.triage("GET", f"/turns/{waiting['request_id']}").json() == turn
    assert failing.triage("GET", "/turns/99").status_code == 404
    assert turn["fork_of"] is None
    flow = flow_for(load_turn(failing.home, turn["turn_id"]), failing.home)
    asyncio.run(resume_turn(flow, turn["turn_id"], ResumeRequest(from_phase="save")))
    assert failing.triage("GET", "/turns/last").json()["fork_of"] == turn["turn_id"]


def test_a_damaged_journal_is_unavailable_however_often_somebody_looks(failing: Service) -> None:
    (waiting,) = failing.triage("GET", "/interventions").json()["interventions"]
    (journal,) = (failing.home / "shared_state/turns").rglob("journal.jsonl")
    journal.write_bytes(b'{"no": "event"}\n' + journal.read_bytes())
    for _ in range(2):
        answer = failing.triage("GET", f"/turns/{waiting['turn_id']}")
        assert (answer.status_code, answer.json()["code"]) == (503, "INTERNAL_ERROR")
        assert str(failing.home) not in answer.text
    again = failing.triage("POST", f"/interventions/{waiting['id']}/retry", json={})
    assert (again.status_code, again.json()["code"]) == (409, "VALIDATION_ERROR")
    left = failing.triage("GET", "/interventions").json()["interventions"]
    assert [entry["id"] for entry in left] == [waiting["id"]], "and nobody hears of it anew"


def test_bad_transitions_are_refused(failing: Service) -> None:
    (waiting,) = failing.triage("GET", "/interventions").json()["interventions"]
    path = f"/interventions/{waiting['id']}"
    for action, body in (
        ("resolve", {"note": ""}),
        ("snooze", {}),
        ("snooze", {"duration": "soon"}),
        ("snooze", {"duration": "9999999d"}),
        ("snooze", {"duration": "0s"}),
        ("resolve", {"note": " "}),
        ("resolve", {"note": "x", "colour": "red"}),
    ):
        answer = failing.triage("POST", f"{path}/{action}", json=body)
        assert answer.status_code in (400, 422), action
        assert answer.json()["code"] == "VALIDATION_ERROR"
        if answer.status_code == 400:
            assert answer.json()["details"]["field"] in body, "it names what was sent"
    assert failing.triage("GET", "/interventions?query=sev:purple").status_code == 400


def test_metrics(failing: Service) -> None:
    assert failing.ask(session_id="s1").status_code == 200, "the same question again, and it helps"
    lines = failing.http.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    expected = {
        'unified_flow_turns_total{status="answered"}': 1,
        'unified_flow_turns_total{status="failed"}': 1,
        'unified_flow_failures_total{category="llm_error",code="LLM_ERROR",phase="synthesis"}': 1,
        'unified_flow_http_requests_total{route="/query",status="502"}': 1,
        'unified_flow_client_retries_total{outcome="succeeded"}': 1,
        'unified_flow_queue_open{severity="high"}': 1,
        'unified_flow_queue_admissions_total{kind="accepted"}': 1,
        'unified_flow_phase_duration_seconds_count{phase="synthesis"}': 2,
        "unified_flow_turn_duration_seconds_count": 1,
        "unified_flow_running_turns": 0,
    }
    assert {name: float(values[name]) for name in expected} == expected
