"""One conversation, over HTTP and over the library: what is said, what is not, and what each left.

Time is injected and the rest is real: the model's endpoint goes away and comes back in a wait.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import httpx
import pytest
import uvicorn

from tests.answers import COMPLETE, DRAFT, every_phase_by_model, open_entries, script
from tests.servers.model_server import ModelServer, Request
from tests.servers.moderation_server import ModerationServer
from unified_flow.api.app import make_app
from unified_flow.config.tables import GuardrailSettings
from unified_flow.engine.services import Services
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.wiring import wire

pytestmark = every_phase_by_model

REPLY = "named bus"  # in the reply, and in no question
SAID = (True, DRAFT.response)
SILENCE = (False, "")


class Waits:
    """Stands in for time: nobody waits, and every wait is known."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.to_thread(self.meanwhile)


class Endpoint:
    """A model's server that goes down and comes up again at the same address."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._server = self._started(0)
        self.url = self._server.url

    def down(self) -> None:
        self._server.close()

    def up(self) -> None:
        self._server = self._started(int(self.url.split(":")[2].split("/")[0]))

    def _started(self, port: int) -> ModelServer:
        server = ModelServer(script(planner=COMPLETE), port=port)
        server.requests = self.requests
        return server.__enter__()

    def told_since(self, number: int) -> str:
        return "\n".join(request.text for request in self.requests[number:])


class Door(Protocol):
    """The flow as somebody reaches it; `(should_respond, what is said)`."""

    def ask(self, message: str, user: str) -> tuple[bool, str]: ...


class OverHttp:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def ask(self, message: str, user: str) -> tuple[bool, str]:
        body = {"question": message, "session_id": "s1", "user_id": user, "channel": "chat"}
        reply = self._http.post("/query", json=body)
        assert reply.status_code == 200, reply.text
        body = reply.json()
        return body["should_respond"], body["answer"]


class OverLibrary:
    def __init__(self, flow: UnifiedFlow, runner: asyncio.Runner) -> None:
        self._flow = flow
        self._runner = runner

    def ask(self, message: str, user: str) -> tuple[bool, str]:
        work = self._flow.process("s1", message, user_id=user, channel="chat")
        turn = self._runner.run(work)
        return turn.should_respond, turn.response or ""


@contextmanager
def over_http(services: Services) -> Iterator[Door]:
    """The application on a socket of its own, in a thread of this process: time can be injected."""
    config = uvicorn.Config(make_app(services), lifespan="on", log_config=None)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=url, timeout=30.0) as http:
            yield OverHttp(http)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def over_library(services: Services) -> Iterator[Door]:
    flow = UnifiedFlow(services)
    with asyncio.Runner() as runner:
        yield OverLibrary(flow, runner)
        runner.run(flow.aclose())


@pytest.fixture
def model() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.down()


@pytest.fixture
def moderation() -> Iterator[ModerationServer]:
    with ModerationServer() as server:
        yield server


@pytest.mark.parametrize("opened", [over_http, over_library])
def test_a_conversation(
    home: Path, model: Endpoint, moderation: ModerationServer, opened: Any
) -> None:
    waits = Waits()
    rules = open_store(home, GuardrailSettings())
    for user, word in (("ada", "spam"), ("bob", "lottery")):
        rules.change(user, lambda _, u=user, w=word: UserRules(user_id=u, flagged_keywords=(w,)))

    def service() -> Services:
        moderated = {"moderation_url": moderation.url}
        served = {"model": "test-model", "base_url": model.url, "serve": {"rate_limit": "off"}}
        return wire(home, policy="silent", guardrails=moderated, pause=waits, **served)

    with opened(service()) as door:
        # A clean exchange.
        assert door.ask("What is a topic?", "ada") == SAID

        # A blocked message: no model is called. It is another user's rule that blocks it.
        before = len(model.requests)
        assert door.ask("Want some s p a m?", "ada") == SILENCE
        assert len(model.requests) == before
        assert door.ask("Is spam a topic?", "bob") == SAID
        assert door.ask("Win a lottery!", "bob") == SILENCE

        # A blocked reply, and the context after it.
        moderation.flags[REPLY] = {"hate": 0.8}
        assert door.ask("And what is a service?", "ada") == SILENCE
        del moderation.flags[REPLY]
        before = len(model.requests)
        assert door.ask("And an action?", "ada") == SAID
        assert "What is a topic?" in model.told_since(before)
        assert "And what is a service?" not in model.told_since(before)

        # Down for two attempts: it comes back in the second wait.
        model.down()
        waits.meanwhile = lambda: model.up() if len(waits.seconds) == 2 else None
        assert door.ask("And a node?", "ada") == SAID
        assert waits.seconds == [2.0, 4.0]

        # Down for all three.
        waits.seconds.clear()
        waits.meanwhile = lambda: None
        model.down()
        assert door.ask("And a parameter?", "ada") == SILENCE
        assert waits.seconds == [2.0, 4.0]
        model.up()

    # A restart: what was said is known, and nothing else is.
    with opened(service()) as door:
        before = len(model.requests)
        assert door.ask("And now?", "ada") == SAID
        prompt = model.told_since(before)
        assert all(said in prompt for said in ("And an action?", "And a node?"))
        unsaid = ("s p a m", "lottery", "And what is a service?", "And a parameter?")
        assert not any(each in prompt for each in unsaid)

        # Moderation is down: silence, as `fail_closed` has it.
        moderation.close()
        before = len(model.requests)
        assert door.ask("Still there?", "ada") == SILENCE
        assert len(model.requests) == before

    stored = [
        (d.user_id, d.decision, d.matched_rule, d.retry_count) for d in rules.decisions(limit=99)
    ]
    assert stored[::-1] == [
        ("ada", "respond", None, 0),
        ("ada", "ignore", "flagged_keyword:spam", 0),
        ("bob", "respond", None, 0),
        ("bob", "ignore", "flagged_keyword:lottery", 0),
        ("ada", "ignore", "openai_moderation", 0),
        ("ada", "respond", None, 0),
        ("ada", "respond", None, 2),
        ("ada", "ignore", None, 3),
        ("ada", "respond", None, 0),
        ("ada", "ignore", "moderation_failed", 0),
    ]
    rules.close()
    waiting = [(entry["phase"], entry["error_type"]) for entry in open_entries(home)]
    assert sorted(waiting) == [("guardrails", "ConnectError"), ("query_analyzer", "ConnectError")]
