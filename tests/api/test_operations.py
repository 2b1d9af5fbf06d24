"""An operator's day with real processes: a killed service and its restart, and a full disk."""

from __future__ import annotations

import json
import resource
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from tests.answers import COMPLETE, SEARCH, every_phase_by_model, script
from tests.api.service import Service, model_flags, serving, until
from tests.servers.model_server import ModelServer, hang, status

pytestmark = every_phase_by_model

SETTINGS = '[serve]\nrate_limit = "off"\nshutdown_grace_s = 0\n'


def ask_in_vain(service: Service, session_id: str | None) -> None:
    with suppress(httpx.HTTPError):
        service.ask(session_id=session_id)


def test_what_a_killed_service_was_at_is_told_and_recovered_over_http(
    folder: Path, docs: Path
) -> None:
    with ModelServer(script(reflection=hang())) as model:
        flags = model_flags(model.url)
        with (
            serving(folder, *flags, docs=docs, settings=SETTINGS) as service,
            ThreadPoolExecutor() as pool,
        ):
            for session_id in ("s1", "s2", None):
                pool.submit(ask_in_vain, service, session_id)
            until(lambda: model.phases.count("reflection") == 3, "the turns do not run")
            service.process.send_signal(signal.SIGKILL)
            service.process.wait()
        model.script = script(planner=[SEARCH, COMPLETE] * 3)
        with serving(folder, *flags, docs=docs, settings=SETTINGS) as service:
            lines = [line for line in service.log if line["type"] == "ProcessDied"]
            assert len(lines) == 3
            # One for each phase that ran; of the question without a session only its beginning
            # was on the disk.
            waiting = service.triage("GET", "/interventions").json()["interventions"]
            assert {entry["error_type"] for entry in waiting} == {"ProcessDied"}
            assert {line["intervention_id"] for line in lines} == {e["id"] for e in waiting}

            recovered = service.triage("POST", "/turns/recover", json={"by": "ada"}).json()["turns"]
            assert [turn["outcome"] for turn in recovered] == ["passed"] * 3
            assert {turn["status"] for turn in recovered} == {"answered"}
            answered = [line["turn_id"] for line in service.log if line["status"] == "answered"]
            assert sorted(answered) == sorted(turn["turn_id"] for turn in recovered)
            again = service.triage("POST", "/turns/recover", json={}).json()
            assert again == {"turns": []}
            assert service.triage("GET", "/interventions").json()["interventions"] == []


def test_two_services_that_recover_at_once_share_the_turns(folder: Path, docs: Path) -> None:
    with ModelServer(script(reflection=hang())) as model, ThreadPoolExecutor() as pool:
        flags = model_flags(model.url)
        with serving(folder, *flags, docs=docs, settings=SETTINGS) as service:
            for number in range(4):
                pool.submit(ask_in_vain, service, f"s{number}")
            until(lambda: model.phases.count("reflection") == 4, "the turns do not run")
            service.process.kill()
            service.process.wait()
        with (
            serving(folder, *flags, docs=docs, settings=SETTINGS) as one,
            serving(folder, *flags, docs=docs, settings=SETTINGS) as other,
        ):
            pool.submit(ask_in_vain, other, "alive")
            until(lambda: model.phases.count("reflection") == 5, "the turn does not run")
            model.script = script(planner=[SEARCH, COMPLETE] * 4)
            recovered = list(
                pool.map(
                    lambda each: each.triage("POST", "/turns/recover", json={}).json()["turns"],
                    (one, other),
                )
            )
            outcomes = [(turn["turn_id"], turn["outcome"]) for turns in recovered for turn in turns]
            passed = sorted(turn for turn, outcome in outcomes if outcome == "passed")
            assert passed == [1, 2, 3, 4]
            assert {outcome for _, outcome in outcomes} <= {"passed", "skipped"}
            assert one.triage("GET", "/turns/5").json()["status"] == "running"
            assert one.triage("GET", "/interventions").json()["interventions"] == []


def test_a_failed_turn_goes_on_by_its_number(folder: Path, docs: Path) -> None:
    with (
        ModelServer(script(synthesis=status(500))) as model,
        serving(folder, *model_flags(model.url), docs=docs, settings=SETTINGS) as service,
    ):
        assert service.ask(session_id="s1").status_code == 502
        assert service.http.post("/turns/1/resume", json={}).status_code == 401
        again = service.triage("POST", "/turns/1/resume", json={})
        assert (again.status_code, again.json()["code"]) == (409, "VALIDATION_ERROR")
        model.script = script()
        done = service.triage("POST", "/turns/1/resume", json={"note": "the model is back"})
        assert done.json() == {"turn_id": 1, "status": "answered"}
        assert service.triage("GET", "/interventions").json()["interventions"] == []
        assert service.triage("POST", "/turns/7/resume", json={}).status_code == 409


def test_logs_are_json_on_stdout_if_wanted(folder: Path, docs: Path) -> None:
    settings = f"{SETTINGS}json_logs = true\n"
    with (
        ModelServer(script(synthesis=status(500))) as model,
        serving(folder, *model_flags(model.url), docs=docs, settings=settings) as service,
    ):
        failed = service.ask(session_id="s1")
        (waiting,) = service.triage("GET", "/interventions").json()["interventions"]
        service.stop()
        assert service.process.stdout is not None
        lines = [json.loads(line) for line in service.process.stdout.read().splitlines()]
    about = {"level": "error", "request_id": failed.headers["X-Request-ID"]}
    (line,) = (line for line in lines if about.items() <= line.items())
    assert (line["service"], line["error_type"]) == ("llm", "HTTPStatusError")
    assert (line["status_code"], line["upstream_status_code"]) == (502, 500)
    assert (line["code"], line["route"]) == ("LLM_ERROR", "/query")
    assert line["intervention_id"] == waiting["id"]
    assert "HTTPStatusError" in line["traceback"]


def test_a_reader_of_logs_who_has_stopped_keeps_nobody_waiting(folder: Path, docs: Path) -> None:
    """A pipe holds two hundred lines."""
    with serving(folder, docs=docs, settings=f"{SETTINGS}json_logs = true\n") as service:
        for _ in range(900):
            assert service.http.get("/nowhere").status_code == 404
        service.stop()


def test_a_model_that_hangs_is_not_ready(folder: Path, docs: Path) -> None:
    settings = f"timeout_s = 4.0\n{SETTINGS}"
    with (
        ModelServer(script(query_analyzer=hang())) as model,
        serving(folder, *model_flags(model.url), docs=docs, settings=settings) as service,
        ThreadPoolExecutor() as pool,
    ):
        assert service.http.get("/ready").status_code == 200
        asked = pool.submit(service.ask)
        until(lambda: service.http.get("/ready").status_code == 503, "it looks ready")
        assert service.http.get("/ready").json()["checks"]["model"] == "failed"
        assert asked.result().status_code == 502
        until(lambda: service.http.get("/ready").status_code == 200, "it is not tried again")


def test_a_rolling_restart_under_load_loses_no_request(folder: Path, docs: Path) -> None:
    """Two services of one home, and clients that go to the other one as a proxy does."""
    settings = f"{SETTINGS.replace('shutdown_grace_s = 0', 'shutdown_grace_s = 5')}"
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        services: list[Service] = []

        def start() -> Service:
            return stack.enter_context(serving(folder, docs=docs, settings=settings))

        services += [start(), start()]
        done = threading.Event()

        def client(name: int) -> list[int]:
            statuses = list[int]()
            while not done.is_set():
                asked = {"question": "What is a topic?", "session_id": f"c{name}"}
                headers = {"X-Request-ID": f"r{name}-{len(statuses)}"}
                statuses.append(ask_any(services, asked, headers))
            return statuses

        clients = [pool.submit(client, name) for name in range(4)]
        try:
            for place in (0, 1):
                old = services[place]
                services[place] = start()
                old.stop()
        finally:
            done.set()
        statuses = [status for each in clients for status in each.result()]
        assert len(statuses) >= len(clients)
        assert set(statuses) == {200}
        answered = Counter(line["request_id"] for line in services[0].log if line["saved"])
        assert set(answered.values()) == {1}
        assert len(answered) == len(statuses)


def ask_any(services: list[Service], asked: dict[str, str], headers: dict[str, str]) -> int:
    """Of the two that are there now, as a proxy knows them, one after the other."""
    for attempt in range(20):
        with suppress(httpx.TransportError):
            url = f"{services[attempt % 2].url}/query"
            status_code = httpx.post(url, json=asked, headers=headers, timeout=30).status_code
            if status_code != 503:
                return status_code
        time.sleep(0.05 * (attempt // 2))
    return 503


STDERR_TO_STDOUT = "import os; os.dup2(1, 2)"  # a pipe, which no disk limits
FULL_BYTES = 2_000  # no file may grow beyond; a log of four requests is longer


def may_write(service: Service, most: int) -> None:
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def test_a_full_disk_is_said_at_once_and_nothing_is_lost_when_there_is_room(
    folder: Path, docs: Path
) -> None:
    with (
        ModelServer(script(planner=[SEARCH, COMPLETE] * 6)) as model,
        serving(
            folder,
            *model_flags(model.url),
            docs=docs,
            settings=SETTINGS,
            before=STDERR_TO_STDOUT,
        ) as service,
    ):
        asked = [service.ask() for _ in range(4)]
        assert {answer.status_code for answer in asked} == {200}
        may_write(service, FULL_BYTES)
        model.script = script(query_analyzer=status(500))
        asked.append(service.ask(session_id="s1"))
        assert asked[-1].status_code in (502, 503)
        ready = service.http.get("/ready")
        assert (ready.status_code, ready.json()["checks"]["queue"]) == (503, "failed")
        assert service.metric('unified_flow_alarms_total{source="query_log"}') >= 1

        may_write(service, resource.RLIM_INFINITY)
        until(lambda: service.http.get("/ready").status_code == 200, "it does not get ready")
        logged = {line["request_id"] for line in service.log}
        assert {answer.headers["X-Request-ID"] for answer in asked} <= logged
        until(
            lambda: service.triage("GET", "/interventions").json()["interventions"],
            "the failure does not come back",
        )
        service.stop()
        assert service.process.stdout is not None
        said = service.process.stdout.read()
        assert "critical: " in said
        assert "rag_queries.jsonl cannot be written" in said
