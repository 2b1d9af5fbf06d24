"""POST /query on a real server: the answer, what is refused, and what a stream brings."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.api.service import TRIAGE, Service


def _events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n", 1)
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_an_answer_has_text_sources_and_metadata(service: Service) -> None:
    answer = service.ask(session_id="s1").json()
    assert "named bus" in answer["answer"]
    source = answer["sources"][0]
    assert source["chapter_id"].endswith("docs/robots.md")
    assert source["section_title"] == "Robots > Topics"
    assert "named bus" in source["excerpt"]
    assert 0 < source["relevance_score"] <= 1
    assert answer["metadata"]["confidence_score"] > 0
    assert answer["metadata"]["num_sources_retrieved"] >= 1
    assert answer["should_respond"] is True
    assert "trace" not in answer or answer["trace"] is None


def test_with_curl(service: Service) -> None:
    body = '{"question": "What is a service?"}'
    command = ["curl", "-sS", "-i", f"{service.url}/query", "-H", "content-type: application/json"]
    shown = subprocess.run([*command, "-d", body], capture_output=True, text=True, check=True)
    head, _, text = shown.stdout.partition("\n\n")
    assert head.startswith("HTTP/1.1 200")
    assert "x-content-type-options: nosniff" in head
    assert "cache-control: no-store" in head
    assert "remote procedure call" in json.loads(text)["answer"]


def test_nothing_found_is_no_error(service: Service) -> None:
    answer = service.ask("Who composed the opera about the lighthouse?")
    assert answer.status_code == 200
    assert answer.json()["metadata"]["confidence_score"] == 0.0
    assert (
        answer.json()["metadata"]["abstained"] or answer.json()["metadata"]["status"] != "answered"
    )


def test_the_trace_names_the_agents_their_phases_and_what_was_retrieved(service: Service) -> None:
    trace = service.ask(trace=True).json()["trace"]
    assert {each["agent_name"]: each["result_data"]["stands_for"] for each in trace["agents"]} == {
        "QueryRouterAgent": ["query_analyzer", "reflection", "planner"],
        "QdrantRetrievalAgent": ["context_gatherer", "coordinator"],
        "AnswerSynthesisAgent": ["synthesis", "validation"],
        "ErrorRecoveryAgent": [],
        "RAGChatAgent": ["save"],
    }
    assert all(agent["success"] for agent in trace["agents"])
    assert trace["retrievals"][0]["query_text"] == "what is a topic?"
    assert [message["role"] for message in trace["messages"]] == ["user", "assistant"]
    assert trace["messages"][1]["sources"][0].endswith("docs/robots.md/Robots > Topics")
    assert trace["messages"][0]["timestamp"] < trace["messages"][1]["timestamp"]


@pytest.mark.parametrize("how", ["header", "field"])
def test_a_stream_brings_phases_then_text_then_the_answer(how: str, service: Service) -> None:
    headers = {"Accept": "text/event-stream"} if how == "header" else {}
    more = {"stream": True} if how == "field" else {}
    answer = service.ask(headers=headers, **more)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = _events(answer.text)
    names = [name for name, _ in events]
    assert names == sorted(names, key=["phase", "text", "answer"].index)
    phases = [data["name"] for name, data in events if name == "phase"]
    assert phases[0] == "query_analyzer"
    assert phases[-1] == "save"
    whole = events[-1][1]
    assert "".join(data["text"] for name, data in events if name == "text") == whole["answer"]
    assert whole["request_id"] == answer.headers["X-Request-ID"]


def test_a_browsers_event_source_gets_the_stream_once(service: Service) -> None:
    asked = {"question": "What is a topic?", "trace": "true"}
    answer = service.http.get("/query/stream", params=asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["X-Accel-Buffering"] == "no"
    first, _, rest = answer.text.partition("\n\n")
    request_id = answer.headers["X-Request-ID"]
    assert first == f"id: {request_id}"
    assert _events(rest)[-1][1]["trace"]
    # It connects again when the stream has ended, and must not ask again.
    again = service.http.get("/query/stream", params=asked, headers={"Last-Event-ID": request_id})
    assert (again.status_code, again.content) == (204, b"")


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=["an event source", "an image"],
)
def test_a_page_of_another_site_cannot_ask(headers: dict[str, str], service: Service) -> None:
    asked = {"question": "What is a topic?", "session_id": "of somebody else"}
    refused = service.http.get("/query/stream", params=asked, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "VALIDATION_ERROR")
    assert service.log[-1]["turn_id"] is None
    own = service.http.get("/query/stream", params=asked, headers={"Sec-Fetch-Site": "same-origin"})
    assert own.status_code == 200


def test_a_stream_that_cannot_begin_has_a_status(service: Service) -> None:
    assert service.http.get("/query/stream", params={"question": " "}).status_code == 400
    assert service.http.get("/query/stream").status_code == 422


def test_what_cannot_begin_is_no_stream(service: Service) -> None:
    answer = service.ask("", stream=True)
    assert (answer.status_code, answer.json()["details"]) == (400, {"field": "query"})


LONG = "x" * 2001
REFUSED: dict[str, tuple[Any, int, str | None]] = {
    "empty": ({"question": ""}, 400, "query"),
    "too long": ({"question": LONG}, 400, "query"),
    "no text": ({"question": "a\u0000b"}, 400, "query"),
    "missing": ({}, 422, "query"),
    "a number": ({"question": 5}, 422, "query"),
    "unknown field": ({"question": "x", "temperature": 1}, 422, "temperature"),
    "unknown channel": ({"question": "x", "channel": "sms"}, 400, "channel"),
    "empty session": ({"question": "x", "session_id": ""}, 400, "session_id"),
    "a word for true": ({"question": "x", "stream": "yes"}, 422, "stream"),
    "a number for true": ({"question": "x", "trace": 1}, 422, "trace"),
    "a list": ([1], 422, None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_asked(case: str, service: Service) -> None:
    body, status, field = REFUSED[case]
    answer = service.http.post("/query", json=body)
    assert answer.status_code == status
    assert answer.json()["code"] == "VALIDATION_ERROR"
    assert answer.json().get("details", {}).get("field") == field
    assert service.log[-1]["http"] | {"duration_ms": 0} == {
        "method": "POST",
        "route": "/query",
        "status": status,
        "duration_ms": 0,
        "client": None,
    }


def _raw(service: Service, method: str, path: str, **more: Any) -> httpx.Response:
    return service.http.request(method, path, **more)


JSON = {"Content-Type": "application/json"}
TRIAGING = {"Authorization": f"Bearer {TRIAGE}"}


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("GET", "/query", {}, 405),
        ("POST", "/rules/anna", {"json": {}, "headers": TRIAGING}, 405),
        ("POST", "/rules/anna", {"json": {}}, 401),
        ("GET", "/../../etc/passwd", {}, 404),
        ("POST", "/query", {"content": b"{", "headers": JSON}, 400),
        ("POST", "/query", {"content": b"\xff\xfe", "headers": JSON}, 400),
        ("POST", "/query", {"content": b"question=x"}, 415),
        ("POST", "/query", {"content": b'"x"' * 200_000, "headers": JSON}, 413),
        ("POST", "/query", {"content": iter([b"x" * 100_000] * 4), "headers": JSON}, 413),
        ("GET", "/turns/1", {}, 401),
        ("GET", "/interventions", {"headers": {"Authorization": "Bearer wrong"}}, 401),
        ("GET", "/health", {"headers": {"Host": "evil.example"}}, 403),
    ],
)
def test_every_refusal_has_the_envelope(
    method: str, path: str, more: dict[str, Any], status: int, service: Service
) -> None:
    answer = _raw(service, method, path, **more)
    assert answer.status_code == status
    body = answer.json()
    assert body["error"] is True
    assert body["code"] == "VALIDATION_ERROR"
    assert ("/openapi.json" in body["message"]) == (status == 404)
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert service.log[-1]["request_id"] == body["request_id"]
    assert service.log[-1]["code"] == "VALIDATION_ERROR"
    if status == 405:
        assert answer.headers["Allow"] == ("POST" if path == "/query" else "GET, PUT, DELETE")
    if status == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_header_cannot_be_smuggled_in(service: Service) -> None:
    answer = service.ask(headers={"X-Request-ID": "a%0d%0aX-Evil: 1"})
    assert answer.status_code == 200
    assert "%0d" not in answer.headers["X-Request-ID"]


def test_health_and_readiness_are_open_and_leave_no_line(service: Service) -> None:
    before = len(service.log)
    assert service.http.get("/health").json()["status"] == "ok"
    ready = service.http.get("/ready").json()
    assert ready["ready"] is True
    # And the guardrails, where somebody has rules.
    assert {"index": "ok", "model": "ok", "queue": "ok", "logs": "ok"}.items() <= ready[
        "checks"
    ].items()
    for path in ("/health", "/ready"):
        alive = service.http.head(path)
        assert (alive.status_code, alive.content) == (200, b"")
    assert len(service.log) == before


def test_a_message_that_is_delivered_again_is_answered_as_it_was(service: Service) -> None:
    again: dict[str, Any] = {"session_id": "again", "headers": {"X-Request-ID": "delivery-1"}}
    first, second = (service.ask(**again).json() for _ in range(2))
    assert second == first
    with ThreadPoolExecutor(6) as pool:  # and at once
        again["headers"] = {"X-Request-ID": "delivery-2"}
        answers = list(pool.map(lambda _: service.ask(**again).json(), range(6)))
    assert answers == [answers[0]] * 6
    assert answers[0] != first
    other = service.ask("What is a service?", **again).json()
    assert other["metadata"]["turn_id"] != first["metadata"]["turn_id"]
