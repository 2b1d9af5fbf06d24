"""A message that is delivered again, to whichever server of the home: it is answered once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.answers import (
    DRAFT,
    Turns,
    every_phase_by_model,
    journal_lines,
    script,
    started_phases,
)
from tests.api.service import Service, model_flags, serving, until
from tests.servers.model_server import Connection, ModelServer, answer, hang, status
from unified_flow.resume.replay.replay import replay

pytestmark = every_phase_by_model

SETTINGS = '[serve]\nrate_limit = "off"\nshutdown_grace_s = 0\n'
AGAIN: dict[str, Any] = {"session_id": "s1", "headers": {"X-Request-ID": "delivery-1"}}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(script()) as server:
        yield server


@pytest.fixture
def two(tmp_path: Path, docs: Path, model: ModelServer) -> Iterator[tuple[Service, Service]]:
    """Two servers on one home."""
    with ExitStack() as running:

        def serve() -> Service:
            service = serving(
                tmp_path / "home", *model_flags(model.url), docs=docs, settings=SETTINGS
            )
            return running.enter_context(service)

        yield serve(), serve()


def turns(service: Service) -> list[str]:
    return sorted(path.name for path in (service.home / "shared_state/turns").iterdir())


def test_two_servers_answer_one_message_once(
    two: tuple[Service, Service], model: ModelServer
) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def slowly(connection: Connection) -> None:
        arrived.set()
        assert go_on.wait(30)
        answer(DRAFT)(connection)

    model.script = script(synthesis=slowly)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(two[0].ask, **AGAIN)
        assert arrived.wait(30)
        others = [pool.submit(server.ask, **AGAIN) for server in (*two, two[1])]
        go_on.set()
        answers = [each.result().json() for each in (first, *others)]
    assert answers == [answers[0]] * 4
    assert answers[0]["answer"] == DRAFT.response
    assert turns(two[0]) == ["turn_000001"]
    assert model.phases.count("synthesis") == 1
    assert list((two[0].home / "shared_state/deliveries").iterdir()) == []
    assert {line["request_id"] for line in two[0].log} == {"delivery-1"}


def test_a_turn_whose_server_was_killed_goes_on_in_the_other(
    two: tuple[Service, Service], model: ModelServer
) -> None:
    """What was done is not done again, and the counters of the loops go on."""
    model.script = script(synthesis=hang())
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(two[0].ask, **AGAIN)
        until(lambda: "synthesis" in model.phases, "it comes to synthesis")
        two[0].stop(signal.SIGKILL)
        assert lost.exception() is not None
    model.script = script()
    asked = len(model.phases)
    given = two[1].ask(**AGAIN).json()
    assert (given["answer"], given["metadata"]["turn_id"]) == (DRAFT.response, 1)
    assert model.phases[asked:] == ["synthesis", "validation"]
    assert turns(two[1]) == ["turn_000001"]
    (taken,) = [e for e in journal_lines(two[1].home) if e["event"] == "turn_taken_over"]
    assert taken["runner"]["pid"] == two[1].process.pid
    shown = two[1].triage("GET", "/turns/1").json()
    assert (shown["status"], shown["saved"]) == ("answered", True)
    assert two[1].ask(**AGAIN).json() == given
    assert replay(Turns(two[1].home).events(1)).same


def test_a_turn_that_ends_its_servers_is_left_to_a_person(
    tmp_path: Path, docs: Path, model: ModelServer
) -> None:
    """Two others go on with it; then the message gets a turn of its own."""
    home = tmp_path / "home"
    model.script = script(synthesis=hang())
    for number in range(1, 4):
        server = serving(home, *model_flags(model.url), docs=docs, settings=SETTINGS)
        with server as service, ThreadPoolExecutor(1) as pool:
            lost = pool.submit(service.ask, **AGAIN)
            until(lambda n=number: model.phases.count("synthesis") == n, "synthesis")
            service.stop(signal.SIGKILL)
            assert lost.exception() is not None
    model.script = script()
    with serving(home, *model_flags(model.url), docs=docs, settings=SETTINGS) as service:
        assert service.ask(**AGAIN).json()["metadata"]["turn_id"] == 2
    assert started_phases(home).count("synthesis") == 3


def test_a_failed_turn_is_no_answer(two: tuple[Service, Service], model: ModelServer) -> None:
    model.script = script(synthesis=status(500))
    assert two[0].ask(**AGAIN).status_code == 502
    model.script = script()
    assert two[1].ask(**AGAIN).json()["metadata"]["turn_id"] == 2
