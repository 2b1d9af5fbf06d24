"""The service as a whole: who may come in, how often, how many, and how it ends."""

from __future__ import annotations

import json
import resource
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from interventions import InterventionQueue
from tests import forked
from tests.answers import every_phase_by_model, journal_lines, script
from tests.api.service import CLIENT, TRIAGE, WAIT_S, Service, model_flags, serving, until
from tests.servers.model_server import ModelServer, hang, rate_limited, status
from unified_flow.api import readiness


@pytest.fixture
def hanging() -> Iterator[ModelServer]:
    with ModelServer(script(query_analyzer=hang(), synthesis=hang())) as model:
        yield model


def _asked(model: ModelServer, times: int) -> None:
    until(lambda: len(model.phases) >= times, f"the model was not asked {times} times")


# -- who may come in ------------------------------------------------------------------------------


def test_another_address_needs_a_token(folder: Path) -> None:
    command = [sys.executable, "-m", "unified_flow", "serve", "--host", "0.0.0.0", "--port", "0"]
    told = forked.run(
        [*command, "--home", str(folder)], capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert "no token is set" in told.stderr
    assert "RAG_CLIENT_TOKEN" in told.stderr


def test_a_guessable_token_is_refused(folder: Path) -> None:
    (folder / "token").write_text("short")
    (folder / "token").chmod(0o600)
    (folder / "unified_flow.toml").write_text('[serve]\ntoken_file = "token"\n')
    command = [sys.executable, "-m", "unified_flow", "serve", "--port", "0", "--home", str(folder)]
    told = forked.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "16 characters" in told.stderr
    assert "short" not in told.stderr


def test_with_a_token_set_only_health_and_readiness_are_open(folder: Path, docs: Path) -> None:
    with serving(
        folder, "--host", "0.0.0.0", docs=docs, env={"RAG_CLIENT_TOKEN": CLIENT}
    ) as service:
        port = httpx.URL(service.url).port
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as http:
            assert http.get("/health").status_code == 200
            assert http.get("/ready").status_code == 200
            body = {"question": "What is a topic?"}
            for token, status_code in ((None, 401), ("wrong", 401), (CLIENT, 200), (TRIAGE, 200)):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                assert http.post("/query", json=body, headers=headers).status_code == status_code
            client = {"Authorization": f"Bearer {CLIENT}"}
            assert http.get("/interventions", headers=client).status_code == 401
            for path in ("/metrics", "/openapi.json", "/errors", "/turns/1"):
                assert http.get(path).status_code == 401


def test_triage_is_off_without_its_token(folder: Path) -> None:
    with serving(folder, env={"RAG_TRIAGE_TOKEN": ""}) as service:
        for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer x"}):
            assert service.http.get("/interventions", headers=headers).status_code == 403


# -- how often, how many --------------------------------------------------------------------------


def test_five_a_second_and_then_429(folder: Path, docs: Path) -> None:
    with serving(folder, docs=docs) as service, ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(service.ask, [""] * 40))
        assert sum(answer.status_code == 400 for answer in answers) >= 5
        refused = next(answer for answer in answers if answer.status_code == 429)
        body = refused.json()
        assert (body["code"], body["details"]) == ("RATE_LIMITED", {"limit": "user_per_second"})
        assert refused.headers["Retry-After"] == "1"
        assert service.http.get("/errors").status_code == 200, "only questions are counted"
        counted = service.http.get("/metrics").text
    for line in (
        f'http_requests_total{{route="/query",status="429"}} {_of(answers, 429)}',
        'client_retries_total{outcome="failed"} ',  # the same again that was refused before
    ):
        assert f"unified_flow_{line}" in counted


def _of(answers: list[httpx.Response], status_code: int) -> float:
    return float(sum(answer.status_code == status_code for answer in answers))


def test_what_is_no_question_counts_as_one(folder: Path) -> None:
    with serving(folder, settings='[serve]\nrate_limit = "3/hour"\n') as service:
        json_type = {"Content-Type": "application/json"}
        answers = [
            service.http.post("/query", content=content, headers=json_type).status_code
            for content in (b"{", b"[]", b"x" * 300_000, b"{", b'{"question": "x?"}')
        ]
    assert answers == [400, 422, 413, 429, 429]


@every_phase_by_model
def test_too_many_at_once(folder: Path, docs: Path, hanging: ModelServer) -> None:
    settings = '[serve]\nmax_turns = 2\nrate_limit = "off"\nshutdown_grace_s = 0\n'
    with (
        serving(folder, *model_flags(hanging.url), docs=docs, settings=settings) as service,
        ThreadPoolExecutor() as pool,
    ):
        held = [pool.submit(service.ask) for _ in range(2)]
        _asked(hanging, 2)
        for stream in (False, True):
            refused = service.ask(stream=stream)
            assert refused.status_code == 503
            assert refused.json()["code"] == "INTERNAL_ERROR"
            assert refused.headers["Retry-After"] == "1"
        metrics = service.http.get("/metrics").text
        assert 'unified_flow_unavailable_total{reason="saturated"} 2.0' in metrics
        assert "unified_flow_turns_limit 2.0" in metrics
        service.stop()
        assert [each.result().status_code for each in held] == [503, 503]


# -- leaving and ending ---------------------------------------------------------------------------


@every_phase_by_model
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_cancels_its_turn(
    stream: bool, folder: Path, docs: Path, hanging: ModelServer
) -> None:
    with serving(folder, *model_flags(hanging.url), docs=docs) as service:
        url = httpx.URL(service.url)
        body = json.dumps({"question": "x?", "session_id": "s", "stream": stream}).encode()
        head = (
            f"POST /query HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((url.host, url.port)) as connection:
            connection.sendall(head.encode() + body)
            _asked(hanging, 1)
        until(lambda: service.log, "the request has no line")
        assert service.log[-1]["status"] == "interrupted"
        assert journal_lines(folder)[-1]["event"] == "turn_interrupted"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_stopping_journals_what_runs_and_tells_the_client(
    sig: int, folder: Path, docs: Path, hanging: ModelServer
) -> None:
    settings = "[serve]\nshutdown_grace_s = 0\n"
    with (
        serving(folder, *model_flags(hanging.url), docs=docs, settings=settings) as service,
        ThreadPoolExecutor() as pool,
    ):
        held = pool.submit(service.ask, session_id="s1")
        _asked(hanging, 1)
        assert service.stop(sig) in (0, -sig, 128 + sig)
        answer = held.result()
        assert answer.status_code == 503
        assert answer.json()["code"] == "INTERNAL_ERROR"
        assert answer.headers["Retry-After"]
        assert journal_lines(folder)[-1]["event"] == "turn_interrupted"
        assert service.log[-1]["status"] == "interrupted"
    shown = forked.run(
        [
            *(sys.executable, "-m", "unified_flow", "turns", "list", "--status", "interrupted"),
            *("--home", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "interrupted" in shown.stdout


def test_a_slow_sender_is_not_waited_for(folder: Path) -> None:
    with serving(folder, settings="[serve]\nbody_timeout_s = 0.2\n") as service:
        url = httpx.URL(service.url)
        head = (
            f"POST /query HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: application/json\r\n"
            "Content-Length: 50\r\n\r\n{"
        )
        with socket.create_connection((url.host, url.port), timeout=WAIT_S) as connection:
            connection.sendall(head.encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


# -- nothing is kept ------------------------------------------------------------------------------


def _turns(home: Path) -> list[Path]:
    return sorted((home / "shared_state" / "turns").glob("turn_*"))


def test_without_a_session_nothing_is_kept(folder: Path, docs: Path) -> None:
    with serving(folder, docs=docs) as service:
        answer = service.ask().json()
        assert answer["metadata"]["saved"] is False
        assert _turns(folder) == []
        kept = service.ask(session_id="s1").json()
        assert kept["metadata"]["saved"] is True
        assert len(_turns(folder)) == 1
        assert len(service.log) == 2


# -- how it is with the service -------------------------------------------------------------------


@every_phase_by_model
def test_a_failure_in_a_stream_is_an_event_with_its_status(folder: Path, docs: Path) -> None:
    with (
        ModelServer(script(planner=rate_limited(7))) as model,
        serving(folder, *model_flags(model.url), docs=docs) as service,
    ):
        plain = service.ask()
        told = service.ask(stream=True).text
    assert (plain.status_code, plain.headers["Retry-After"]) == (429, "7")
    name, _, data = told.strip().rpartition("\n\n")[2].partition("\n")
    error = json.loads(data.removeprefix("data: "))
    assert name == "event: error"
    assert (error["status"], error["code"], error["retry_after"]) == (429, "RATE_LIMITED", 7)


LOOKS_EACH_TIME = f"from {readiness.__package__} import readiness\nreadiness.GOOD_FOR_S = 0.0"


def test_not_ready_when_a_part_is_not(folder: Path, docs: Path) -> None:
    with (
        ModelServer() as model,
        serving(folder, *model_flags(model.url), docs=docs, before=LOOKS_EACH_TIME) as service,
    ):
        assert service.http.get("/ready").status_code == 200
        # As good as a disk that fills up.
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        until(lambda: service.http.get("/ready").status_code == 503, "it stays ready")
        assert service.http.get("/ready").json()["checks"] == {
            "index": "ok",
            "model": "ok",
            "queue": "failed",
            "logs": "ok",
        }
        whole = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, whole)
        until(lambda: service.http.get("/ready").status_code == 200, "it is not ready again")
        model.close()
        until(lambda: service.http.get("/ready").status_code == 503, "it stays ready")
        answer = service.http.get("/ready")
        assert answer.json()["checks"]["model"] == "failed"
        assert answer.json()["code"] == "INTERNAL_ERROR"
        assert model.url not in answer.text
        assert service.http.get("/health").status_code == 200


@pytest.mark.parametrize("policy", ["fail_fast", "graceful", "silent"])
def test_a_home_that_takes_no_turn(policy: str, folder: Path, docs: Path) -> None:
    with serving(folder, "--policy", policy, docs=docs) as service:
        turns = folder / "shared_state" / "turns"
        turns.write_text("a disk that is full refuses a folder, too")
        answer = service.ask()
        streamed = service.ask(stream=True)
        turns.unlink()
        assert service.ask().status_code == 200
    if policy == "silent":
        assert (answer.status_code, answer.json()["should_respond"]) == (200, False)
        assert '"should_respond": false' in streamed.text
    else:
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert (answer.json()["type"], answer.json()["code"]) == (
            "InternalRagError",
            "INTERNAL_ERROR",
        )
        assert streamed.status_code == 503, "no stream has begun"
    told = [entry["error_type"] for entry in InterventionQueue(folder).entries()]
    assert told == ["NoTurnError"] * 2
    assert [(line["code"], line["error"]) for line in service.log[:2]] == [
        ("INTERNAL_ERROR", True)
    ] * 2


def test_many_clients_and_every_request_has_its_line(service: Service) -> None:
    before = len(service.log)
    barrier = threading.Barrier(8)

    def one(number: int) -> int:
        barrier.wait(WAIT_S)
        return sum(service.ask(f"What is topic {number}?").status_code == 200 for _ in range(5))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == [5] * 8
    ids = [line["request_id"] for line in service.log[before:]]
    assert len(ids) == len(set(ids)) == 40


@every_phase_by_model
def test_a_turn_that_is_silent_or_left_is_counted_too(folder: Path, docs: Path) -> None:
    with (
        # Not to be tried again: this policy waits for six seconds in all.
        ModelServer(script(synthesis=status(400))) as model,
        serving(folder, *model_flags(model.url), "--policy", "silent", docs=docs) as service,
    ):
        answer = service.ask()
        assert (answer.status_code, answer.json()["should_respond"]) == (200, False)
        model.script = script(query_analyzer=hang())
        with pytest.raises(httpx.ReadTimeout):
            service.http.post("/query", json={"question": "x?"}, timeout=0.5)
        until(lambda: len(service.log) == 2, "who left has no line")
        text = service.http.get("/metrics").text
    for name in (
        'turns_total{status="failed"}',
        'turns_total{status="interrupted"}',
        'failures_total{category="llm_error",code="LLM_ERROR",phase="synthesis"}',
    ):
        assert f"unified_flow_{name} " in text
