"""A program's way in: a question without an event loop, own functions, an own model, and arguments
of the wrong type, which are refused at the call."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests import forked
from tests.answers import (
    COMPLETE,
    DRAFT,
    NOTHING_CLAIMED,
    QUESTION,
    Turns,
    open_entries,
    script,
)
from tests.servers.model_server import ModelServer, hang, status
from unified_flow import (
    ConfigError,
    InputError,
    ModelCall,
    ModelReply,
    PhaseError,
    UnifiedFlow,
    tool,
)
from unified_flow.models.scripted import ScriptedModel
from unified_flow.turns.results import Plan, ToolRequest


def opening_hours(place: str) -> str:
    """When a place is open."""
    return f"The {place} is open from 9 to 18."


HOURS = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[ToolRequest(tool="opening_hours", args={"place": "library"}, goal_id="g1")],
)


def test_a_question_needs_no_event_loop(home: Path, docs: Path) -> None:
    flow = UnifiedFlow.from_config(home, docs=str(docs))
    assert "named bus" in (flow.ask(QUESTION).response or "")
    first, second = flow.ask(QUESTION), flow.ask("What is bread?", session_id="kitchen")
    assert (first.turn_id, second.turn_id) == (2, 3)
    assert second.session_id == "kitchen" != first.session_id


def test_what_a_question_opens_it_closes(home: Path, docs: Path, model_server: ModelServer) -> None:
    flow = UnifiedFlow.from_config(
        home, docs=docs, model="m", base_url=model_server.url, size="large"
    )
    for _ in range(2):
        model_server.script = script()
        assert flow.ask(QUESTION).response == DRAFT.response


def test_a_failure_says_where_to_read_on(home: Path, docs: Path, model_server: ModelServer) -> None:
    flow = UnifiedFlow.from_config(home, docs=docs, model="m", base_url=model_server.url)
    model_server.script = script(query_analyzer=status(500))
    with pytest.raises(PhaseError) as caught:
        flow.ask(QUESTION)
    (entry,) = open_entries(home)
    shown = "".join(traceback.format_exception(caught.value))
    assert f"next: interventions show {entry['id']}" in shown
    assert "hint: The model server failed" in shown


def test_ctrl_c_interrupts_the_turn_before_the_program_ends(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(query_analyzer=hang())
    program = (
        "from unified_flow import UnifiedFlow\n"
        f"options = dict(docs={str(docs)!r}, model='m', base_url={model_server.url!r})\n"
        f"UnifiedFlow.from_config({str(home)!r}, **options).ask('What is a topic?')\n"
    )
    with forked.Process([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        end = monotonic() + 240
        while not model_server.requests:
            assert monotonic() < end, "the model was not asked"
            sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert Turns(home).require(1).status == "interrupted"
    assert open_entries(home) == []


def test_where_a_loop_runs_it_says_what_to_write(home: Path, docs: Path) -> None:
    async def inside() -> None:
        UnifiedFlow.from_config(home, docs=docs).ask(QUESTION)

    with pytest.raises(InputError, match="event loop") as caught:
        asyncio.run(inside())
    assert "await flow.process" in (caught.value.hint or "")


def test_a_plain_function_is_a_tool_beside_the_others(home: Path, docs: Path) -> None:
    model = ScriptedModel(script(planner=[HOURS, COMPLETE], synthesis=NOTHING_CLAIMED))
    flow = UnifiedFlow.from_config(
        home, docs=docs, model=model, tools=[opening_hours], allow_tools="opening_hours"
    )
    turn = flow.ask(QUESTION)
    (result,) = turn.sections.coordinator
    assert result.result == "The library is open from 9 to 18."
    planned = next(call for call in model.calls if call.phase == "planner")
    assert {"opening_hours", "doc.search"} <= {each.name for each in planned.sections.tools}


def test_an_own_model_has_three_members(home: Path, docs: Path) -> None:
    class Echo:
        name = "echo"

        async def complete(self, call: ModelCall) -> ModelReply:
            return ModelReply('{"response": "An own answer.", "abstained": true}')

        async def aclose(self) -> None: ...

    models = {"echo": Echo()}
    flow = UnifiedFlow.from_config(home, docs=docs, extra_models=models, roles={"voice": "echo"})
    assert flow.ask(QUESTION).response == "An own answer."


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"docs": 3}, "docs is a path, or a list of them, not int"),
        ({"docs": ["a", 3]}, "docs is a path, or a list of them, not int"),
        ({"tools": [3]}, "tools is a function or a Tool, or a list of them, not int"),
        ({"tools": "mytools.py"}, "tools is a function or a Tool, or a list of them, not str"),
        ({"tools": [lambda: 1]}, "a tool cannot be called"),
        ({"allow_tools": 3}, "allow_tools is a text, or a list of them, not int"),
        ({"tool_modules": [open]}, "tool_modules is a text, or a list of them"),
        ({"model": 3}, "model is a name or a Model, not int"),
        ({"extra_models": {"m": 3}}, "extra_models holds a int, which is no Model"),
        ({"extra_models": [3]}, "extra_models is a dict of Models by name, not list"),
        ({"doc": "x"}, "unknown setting 'doc'; did you mean 'docs'?"),
        ({"timeout_s": "soon"}, "setting 'timeout_s' is wrong"),
    ],
)
def test_a_wrong_argument_fails_at_the_call(home: Path, wrong: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        UnifiedFlow.from_config(home, **wrong)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: tool("reads"), "@tool stands before a function, and got 'reads'"),
        (lambda: tool(access="read"), "a tool has no access 'read'"),
        (lambda: tool(access=["reads", "all"]), "a tool has no access 'all'"),
    ],
)
def test_a_tool_declared_wrongly_says_so_at_once(wrong: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wrong()
    assert message in str(caught.value)
    assert "reads" in (caught.value.hint or "")


def test_a_folder_that_is_not_there_is_named_whole(home: Path) -> None:
    with pytest.raises(InputError, match="home/lost"):
        UnifiedFlow.from_config(home, docs=str(home / "lost"))
