"""Bodies and paths that nobody sends by mistake: each gets its envelope, and nothing breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.service import Service, serving

JSON = {"Content-Type": "application/json"}
BODIES = {
    "nested": b'{"question": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a number without end": b'{"question": ' + b"9" * 100_000 + b"}",
    "half a surrogate pair": rb'{"question": "\ud800"}',
    "half a pair as a name": rb'{"question": "x", "\ud800": 1}',
    "a session that is no text": rb'{"question": "x", "session_id": "a\ud800"}',
    "a control character": rb'{"question": "x", "user_id": "a\u0000"}',
    "not a number": b'{"question": NaN}',
    "a key as a name": b'{"question": "x", "sk-proj-abcdefghijklmnopqrstuvwxyz123456": 1}',
    "nothing": b"",
    "null": b"null",
}


@pytest.mark.parametrize("path", ["/query", "/v1/chat/completions"])
@pytest.mark.parametrize("case", BODIES)
def test_a_hostile_body(case: str, path: str, service: Service) -> None:
    answer = service.http.post(path, content=BODIES[case], headers=JSON)
    assert answer.status_code in (400, 422)
    body = answer.json()
    error = body["error"] if path.startswith("/v1") else body
    assert error["code"] == "VALIDATION_ERROR"
    assert "sk-proj-abc" not in answer.text


def test_hostile_questions_of_an_openai_client(service: Service) -> None:
    for content in ("\ud800", "", "x" * 2001, "a\u0000b"):
        message = {"role": "user", "content": content}
        text = json.dumps({"model": "unified-flow", "messages": [message]})
        answer = service.http.post("/v1/chat/completions", content=text, headers=JSON)
        assert answer.status_code == 400, repr(content)[:20]
        assert answer.json()["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    "name", ["%00", "%ED%A0%80", "..%2F..%2Fetc%2Fpasswd", "9" * 90, "a" * 101, "%0d%0aX-Evil:%201"]
)
def test_hostile_names(name: str, service: Service) -> None:
    for path in (f"/turns/{name}", f"/interventions/{name}"):
        answer = service.triage("GET", path)
        assert answer.status_code in (400, 404, 422), path
        assert answer.json()["code"] == "VALIDATION_ERROR"
        assert "X-Evil" not in answer.headers


def test_hostile_transitions(service: Service) -> None:
    for body in (rb'{"note": "\ud800"}', b'{"note": 5}', b'{"note": "x", "by": "\\u0000"}'):
        answer = service.http.post(
            "/interventions/none/resolve",
            content=body,
            headers=JSON | {"Authorization": "Bearer triage-token-0123456789abcdef"},
        )
        assert answer.status_code in (400, 404, 422)


def test_preflights_fill_no_disk(tmp_path: Path) -> None:
    settings = '[serve]\ncors_origins = ["https://chat.example"]\n'
    with serving(tmp_path / "home", settings=settings) as service:
        asks = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        for _ in range(1200):
            service.http.options("/query", headers=asks)
        assert len(service.log) < 1100


def test_another_site_may_ask_if_it_is_named_and_its_preflights_are_logged(folder: Path) -> None:
    with serving(folder, settings='[serve]\ncors_origins = ["https://chat.example"]\n') as service:
        asks = {"Access-Control-Request-Method": "POST"}
        named = {"Origin": "https://chat.example"}
        allowed = service.http.options("/query", headers=named | asks)
        refused = service.http.options("/query", headers={"Origin": "https://evil.example"} | asks)
        answer = service.ask(" ", headers=named)
        streamed = service.http.get("/query/stream", params={"question": " "}, headers=named)
    assert streamed.status_code == 400
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://chat.example"
    assert refused.status_code == 400
    assert "Access-Control-Allow-Origin" not in refused.headers
    assert answer.headers["Access-Control-Allow-Origin"] == "https://chat.example"
    ids = [each.headers["X-Request-ID"] for each in (allowed, refused, answer, streamed)]
    assert [line["request_id"] for line in service.log] == ids
