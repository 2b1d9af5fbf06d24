from __future__ import annotations

import asyncio

import pytest
from pydantic import Field

from unified_flow.errors import (
    ConfigError,
    ToolArgumentError,
    ToolError,
    ToolNotFoundError,
    ToolTimeoutError,
)
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.results import ToolRequest


class RepeatArguments(Arguments):
    text: str
    times: int = Field(default=1, ge=1, le=5)


async def repeat(args: RepeatArguments) -> ToolOutput:
    return ToolOutput(result=args.text * args.times)


async def hang(args: RepeatArguments) -> ToolOutput:
    await asyncio.Event().wait()
    raise AssertionError


async def own_time_out(args: RepeatArguments) -> ToolOutput:
    raise TimeoutError("the printer is slow")


def tool(run=repeat, name: str = "text.repeat", timeout_s: float = 30.0) -> Tool:  # type: ignore[no-untyped-def]
    reads = frozenset({Access.READS})
    return Tool(name, "Repeat a text.", RepeatArguments, reads, run, timeout_s=timeout_s)


def test_a_tool_is_described_to_the_planner_by_its_schema() -> None:
    [described] = Toolbox([tool()]).describe()
    assert (described.name, described.description) == ("text.repeat", "Repeat a text.")
    assert set(described.parameters["properties"]) == {"text", "times"}
    assert described.parameters["additionalProperties"] is False


def test_a_checked_request_runs() -> None:
    box = Toolbox([tool()])
    found, args = box.check(ToolRequest(tool="text.repeat", args={"text": "ab", "times": 2}))
    assert asyncio.run(box.call(found, args)).result == "abab"


@pytest.mark.parametrize("returned", [object(), {"a": [object()]}, {1: lambda: 1}])
def test_what_no_journal_can_take_is_the_tool_s_failure(returned: object) -> None:
    async def strange(args: RepeatArguments) -> ToolOutput:
        return ToolOutput(result=returned)

    box = Toolbox([tool(strange)])
    found, args = box.check(ToolRequest(tool="text.repeat", args={"text": "ab"}))
    with pytest.raises(ToolError, match=r"text\.repeat returned what cannot be written as JSON"):
        asyncio.run(box.call(found, args))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("text.repeet", "Did you mean text.repeat?"), ("rm", "The tools are: text.repeat.")],
)
def test_an_unknown_tool_is_a_config_error_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(ToolNotFoundError, match=f"no tool '{name}'") as caught:
        Toolbox([tool()]).check(ToolRequest(tool=name))
    assert isinstance(caught.value, ConfigError)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "text.repeat: argument text is missing"),
        ({"text": 3}, "argument text: Input should be a valid string, not 3"),
        ({"text": "a", "times": 9}, "argument times: .* less than or equal to 5, not 9"),
        ({"text": "a", "tims": 2}, r"unknown argument 'tims' \(did you mean times\?\)"),
        ({"text": "a", "x" * 999: 2}, "unknown argument 'xxx[^\n]*…\n"),
        ({"times": 0}, "argument text is missing; argument times"),
    ],
)
def test_a_bad_argument_is_named_before_any_call(args: dict[str, object], said: str) -> None:
    with pytest.raises(ToolArgumentError, match=said) as caught:
        Toolbox([tool()]).check(ToolRequest(tool="text.repeat", args=args))
    assert caught.value.hint == "The arguments of text.repeat are: text, times."


def test_a_tool_that_takes_too_long_is_stopped() -> None:
    box = Toolbox([tool(hang, timeout_s=0.01)])
    with pytest.raises(ToolTimeoutError, match=r"text\.repeat did not finish in 0\.01 s"):
        asyncio.run(box.call(*box.check(ToolRequest(tool="text.repeat", args={"text": "a"}))))


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan")])
def test_a_tool_has_a_finite_time(timeout_s: float) -> None:
    with pytest.raises(ConfigError, match="timeout_s is"):
        tool(timeout_s=timeout_s)


def test_what_a_tool_raises_comes_as_it_is() -> None:
    box = Toolbox([tool(own_time_out)])
    with pytest.raises(TimeoutError, match="the printer is slow") as caught:
        asyncio.run(box.call(*box.check(ToolRequest(tool="text.repeat", args={"text": "a"}))))
    assert type(caught.value) is TimeoutError


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"two tools named text\.repeat"):
        Toolbox([tool(), tool()])


class Served:
    """A server that serves these tools."""

    def __init__(self, name: str, *tools: Tool) -> None:
        self.name = name
        self.ambiguous: tuple[str, ...] = ()
        self.closed = False
        self._tools = tools

    async def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def aclose(self) -> None:
        self.closed = True
        if self.name == "broken":
            raise OSError("it will not go")


def test_two_tools_of_one_name_fail_each_turn_and_not_the_first_alone() -> None:
    box = Toolbox([tool()], [Served("text", tool(), tool(name="text.other"))])
    for _ in range(3):
        with pytest.raises(ConfigError, match=r"two tools named text\.repeat"):
            asyncio.run(box.open())
        assert [each.name for each in box] == ["text.repeat"]


def test_a_server_that_cannot_be_closed_keeps_no_other_open() -> None:
    broken, well = Served("broken"), Served("well")
    with pytest.raises(OSError, match="it will not go"):
        asyncio.run(Toolbox([], [broken, well]).aclose())
    assert well.closed
