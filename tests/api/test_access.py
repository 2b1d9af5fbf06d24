"""Clients with names, tokens that change while it serves, and limits for each client's users."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import TOPICS
from tests.api.service import CLIENT, Service, serving, until
from unified_flow.api.access import SessionIds, needs_triage
from unified_flow.api.app import routes
from unified_flow.errors import ConfigError

OTHER = "other-token-0123456789abcdef"
METRICS = "metrics-token-0123456789abcdef"


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def write_tokens(folder: Path, text: str) -> None:
    """As an operator does: another file in its place."""
    new = folder / "tokens.new"
    new.write_text(text)
    new.chmod(0o600)
    new.rename(folder / "tokens")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("guarded")
    (place / "docs").mkdir()
    (place / "docs" / "robots.md").write_text(TOPICS)
    home = place / "home"
    home.mkdir()
    write_tokens(home, f"# two backends\nshop {CLIENT}\nwiki {OTHER}\n")
    settings = '[serve]\ntoken_file = "tokens"\nrate_limit = "1/hour"\n'
    env = {"RAG_METRICS_TOKEN": METRICS}
    with serving(home, docs=place / "docs", settings=settings, env=env) as service:
        yield service


def test_each_client_has_a_name_in_the_log(guarded: Service) -> None:
    for token, name in ((CLIENT, "shop"), (OTHER, "wiki")):
        assert guarded.ask(headers=bearer(token), user_id=f"of {name}").status_code == 200
        assert guarded.log[-1]["http"]["client"] == name


def test_a_limit_counts_the_users_of_a_client_and_not_its_address(guarded: Service) -> None:
    def ask(token: str, user: str, how: str) -> int:
        headers = bearer(token, **({"X-User": user} if how == "header" else {}))
        more = {"user_id": user} if how == "body" else {}
        return guarded.ask(headers=headers, **more).status_code

    for how in ("header", "body"):
        assert ask(CLIENT, f"anna {how}", how) == 200
        assert ask(CLIENT, f"anna {how}", how) == 429
        assert ask(CLIENT, f"berta {how}", how) == 200
        assert ask(OTHER, f"anna {how}", how) == 200
    messages = {"messages": [{"role": "user", "content": "What is a topic?"}], "user": "carla"}
    statuses = [
        guarded.http.post("/v1/chat/completions", json=messages, headers=bearer(CLIENT)).status_code
        for _ in range(2)
    ]
    assert statuses == [200, 429]
    for user, expected in (("dora", 200), ("emil", 200), ("dora", 429)):
        asked = {"question": "What is a topic?", "user_id": user}
        streamed = guarded.http.get("/query/stream", params=asked, headers=bearer(CLIENT))
        assert streamed.status_code == expected


def test_tokens_change_without_a_restart(guarded: Service) -> None:
    def status(token: str) -> int:
        return guarded.http.get("/errors", headers=bearer(token)).status_code

    new = "new-token-0123456789abcdef"
    write_tokens(guarded.home, f"shop {CLIENT}\nshop {new}\nwiki {OTHER}\n")
    assert (status(CLIENT), status(new)) == (200, 200)
    write_tokens(guarded.home, f"shop {new}\nwiki {OTHER}\n")
    assert (status(CLIENT), status(new)) == (401, 200)
    # A mistake locks nobody out, lets nobody in, and is said.
    write_tokens(guarded.home, "")
    assert (status(new), status("wrong")) == (200, 401)
    flow_log = guarded.home / "logs" / "flow.log"
    until(lambda: "holds no token" in flow_log.read_text(), "nobody is told")
    assert new not in flow_log.read_text()
    write_tokens(guarded.home, f"shop {CLIENT}\nwiki {OTHER}\n")
    assert status(CLIENT) == 200


def test_the_metrics_have_a_token_of_their_own(guarded: Service) -> None:
    def status(path: str, token: str) -> int:
        return guarded.http.get(path, headers=bearer(token)).status_code

    assert [status("/metrics", token) for token in (METRICS, CLIENT)] == [200, 401]
    assert [status("/errors", token) for token in (METRICS, CLIENT)] == [401, 200]


def test_whoever_guesses_is_slowed_down_and_fills_no_disk(tmp_path: Path) -> None:
    env = {"RAG_CLIENT_TOKEN": CLIENT}
    with serving(tmp_path / "home", env=env) as service:
        guesses = [service.http.get("/errors", headers=bearer(f"guess {n}")) for n in range(1200)]
        statuses = [each.status_code for each in guesses]
        assert statuses[0] == 401
        assert set(statuses) == {401, 429}
        assert statuses.count(401) < 200  # thirty a minute, however long it takes
        assert int(guesses[-1].headers["Retry-After"]) >= 1
        assert service.http.get("/errors", headers=bearer(CLIENT)).status_code == 200
        assert len(service.log) < 1100


def test_a_client_that_guesses_the_triage_token_is_slowed_down(tmp_path: Path) -> None:
    with serving(tmp_path / "home", settings='[serve]\nrate_limit = "off"\n') as service:
        guesses = [service.http.get("/turns/1", headers=bearer(f"guess {n}")) for n in range(60)]
        assert {each.status_code for each in guesses} == {401, 429}
        assert service.triage("GET", "/turns/1").status_code == 404
        assert service.ask().status_code == 200


def test_a_newline_behind_a_path_opens_nothing(guarded: Service) -> None:
    for path in ("/interventions", "/rules", "/decisions", "/metrics", "/query/stream?question=x"):
        name, _, query = path.partition("?")
        for headers in ({}, bearer(CLIENT)):
            answer = guarded.http.get(f"{name}%0A?{query}", headers=headers)
            assert answer.status_code == 404, path


def test_a_session_key_that_lost_its_end_is_not_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "shared_state").mkdir(parents=True)
    (home / "shared_state" / "session_key").touch()
    with pytest.raises(ConfigError, match="session_key is damaged"):
        SessionIds(home)


def test_a_client_can_name_no_session_that_the_service_has_not_made(tmp_path: Path) -> None:
    settings = '[serve]\nown_session_ids = true\nrate_limit = "off"\n'
    home = tmp_path / "home"
    with serving(home, settings=settings) as service, serving(home, settings=settings) as other:
        made = service.http.post("/sessions").json()["session_id"]
        assert made != service.http.post("/sessions").json()["session_id"]
        for each in (service, other):
            assert each.ask(session_id=made).status_code == 200
            for stream in (False, True):
                for named in ("s1", made[:-1] + "x", made.partition(".")[0], "."):
                    refused = each.ask(session_id=named, stream=stream)
                    assert (refused.status_code, refused.json().get("details")) == (
                        400,
                        {"field": "session_id"},
                    )


def test_a_body_that_two_readers_end_differently_is_refused(guarded: Service) -> None:
    url = httpx.URL(guarded.url)
    with socket.create_connection((url.host, url.port), timeout=20) as connection:
        connection.sendall(
            b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        answer = b""
        while part := connection.recv(4096):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "VALIDATION_ERROR"


def test_the_triage_token_is_needed_wherever_something_is_triaged() -> None:
    for path, methods in routes().openapi()["paths"].items():
        for route in methods.values():
            assert needs_triage(path) == bool({"triage", "guardrails"} & set(route["tags"])), path
