"""A typed function as a tool: its schema, its words, its failures."""

from __future__ import annotations

import asyncio
import functools
import threading
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.unit.tools.running import run
from unified_flow.errors import ConfigError, ToolArgumentError, ToolError, ToolTimeoutError
from unified_flow.tools import Access
from unified_flow.tools.functions import from_function, tool
from unified_flow.tools.toolbox import Toolbox


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclass
class Report:
    city: str
    degrees: float


def google(city: str, days: Annotated[int, Field(ge=1, le=10)] = 1) -> str:
    """Tell the weather.

    Of any city that has a name.

    Args:
        city: its name
        days: how many days ahead
    """
    return f"{city}: {days}"


def numpy(city: str, days: Annotated[int, Field(ge=1, le=10)] = 1) -> str:
    """Tell the weather.

    Of any city that has a name.

    Parameters
    ----------
    city : str
        its name
    days : int
        how many days ahead
    """
    return f"{city}: {days}"


def sphinx(city: str, days: Annotated[int, Field(ge=1, le=10)] = 1) -> str:
    """Tell the weather.

    Of any city that has a name.

    :param city: its name
    :param days: how many days ahead
    """
    return f"{city}: {days}"


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_the_schema_is_the_signature_and_the_words_are_the_docstring(function: Any) -> None:
    [described] = Toolbox([from_function(function)]).describe()
    assert described.name == function.__name__
    assert described.description == "Tell the weather.\nOf any city that has a name."
    city, days = (described.parameters["properties"][name] for name in ("city", "days"))
    assert (city["type"], city["description"]) == ("string", "its name")
    assert (days["type"], days["default"], days["minimum"]) == ("integer", 1, 1)
    assert days["description"] == "how many days ahead"
    assert described.parameters["required"] == ["city"]


def test_any_type_with_a_schema_and_any_name_of_a_parameter() -> None:
    class Place(BaseModel):
        lat: float

    def measure(
        schema: Place, json: list[int], unit: Unit, *, copy: Literal["x"] | None = None
    ) -> Any:
        return [schema.lat, sum(json), unit.value, copy]

    measure.__annotations__["schema"] = Place
    box = Toolbox([from_function(measure)])
    found = run(box, "measure", schema={"lat": 1.5}, json=[1, 2], unit="c")
    assert found.result == [1.5, 3, "c", None]


def test_sync_and_async_functions_run_alike() -> None:
    async def later(city: str) -> Report:
        await asyncio.sleep(0)
        return Report(city, 4.5)

    def at_once(city: str) -> Report:
        return Report(city, 4.5)

    box = Toolbox([from_function(later), from_function(at_once)])
    for name in ("later", "at_once"):
        found = run(box, name, city="Lund")
        assert found.result == {"city": "Lund", "degrees": 4.5}
        assert found.claims[0].source == name
        assert "Lund" in found.claims[0].claim


def test_what_declares_nothing_counts_as_writing() -> None:
    @tool(access="reads", name="weather.now", timeout_s=3)
    def reading() -> None: ...

    @tool
    def marked() -> None: ...

    def plain() -> None: ...

    declared = from_function(reading)
    assert (declared.name, declared.timeout_s) == ("weather.now", 3)
    assert declared.access == {Access.READS}
    assert from_function(marked).access == from_function(plain).access == {Access.WRITES}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "argument city is missing"),
        ({"city": "Lund", "days": 0}, "greater than or equal to 1"),
        ({"city": "Lund", "dayz": 2}, "did you mean days?"),
        ({"city": ["Lund"]}, "argument city"),
    ],
)
def test_arguments_are_checked_before_the_call(args: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolArgumentError, match=said.replace("?", r"\?")):
        run(Toolbox([from_function(google)]), "google", **args)


def test_what_cannot_be_a_tool_says_why() -> None:
    def untyped(a) -> None: ...  # type: ignore[no-untyped-def]
    def starred(*a: int) -> None: ...
    def positional(a: int, /) -> None: ...
    def strange(a: asyncio.AbstractEventLoop) -> None: ...
    def odd(a: Any = object()) -> None: ...  # noqa: B008
    def yields() -> Any:
        yield 1

    async def yields_later() -> Any:
        yield 1

    for function, said in (
        (untyped, "a has no type"),
        (starred, "cannot be given by name"),
        (positional, "cannot be given by name"),
        (strange, "no JSON schema"),
        (odd, r"odd: the default of a is no JSON\n"),
        (yields, "yields, and a tool returns"),
        (yields_later, "yields_later yields"),
    ):
        with pytest.raises(ConfigError, match=said):
            from_function(function)


def test_a_failure_is_the_function_s_own_and_a_result_must_be_json() -> None:
    def fails() -> None:
        raise LookupError("no such city")

    def leaves() -> None:
        raise SystemExit(3)

    def stops() -> None:
        raise StopIteration

    def odd() -> object:
        return object()

    box = Toolbox(map(from_function, (fails, leaves, stops, odd)))
    for name, kind in (
        ("fails", LookupError),
        ("leaves", ToolError),
        ("stops", ToolError),
        ("odd", ToolError),
    ):
        with pytest.raises(kind):
            run(box, name)


def test_a_function_that_hangs_keeps_neither_the_turn_nor_the_process() -> None:
    let_go = threading.Event()

    @tool(timeout_s=0.02)
    def hangs() -> None:
        let_go.wait()

    with pytest.raises(ToolTimeoutError, match=r"0\.02 s"):
        run(Toolbox([from_function(hangs)]), "hangs")  # asyncio.run does not wait for the thread
    let_go.set()


def behind_a_decorator() -> Any:
    async def wanted(city: str) -> str:
        return f"sun in {city}"

    @functools.wraps(wanted)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return wanted(*args, **kwargs)

    return wrapper


def test_a_coroutine_function_behind_an_ordinary_decorator_is_awaited() -> None:
    found = run(Toolbox([from_function(behind_a_decorator())]), "wanted", city="Lund")
    assert found.result == "sun in Lund"


class NoException(BaseException):
    pass


@pytest.mark.parametrize("raised", [NoException("odd"), SystemExit(3), StopIteration("end")])
def test_what_is_no_exception_is_a_failure_of_the_tool(raised: BaseException) -> None:
    def sync() -> str:
        raise raised

    async def later() -> str:
        raise raised

    for function in (sync, later):
        with pytest.raises(Exception, match=type(raised).__name__) as caught:
            run(Toolbox([from_function(function)]), function.__name__)
        assert isinstance(caught.value, ToolError | RuntimeError)


def test_ctrl_c_of_a_tool_in_its_thread_is_not_that_of_the_person() -> None:
    def sync() -> str:
        raise KeyboardInterrupt

    async def later() -> str:
        raise KeyboardInterrupt

    for function in (sync, later):
        with pytest.raises(ToolError, match="raised KeyboardInterrupt"):
            run(Toolbox([from_function(function)]), function.__name__)


@pytest.mark.parametrize("huge", ["x" * 1_000_001, ["x" * 600_000] * 2])
def test_more_than_a_journal_and_a_model_should_take_is_refused(huge: Any) -> None:
    def flood() -> Any:
        return huge

    with pytest.raises(ToolError, match=r"flood returned 1,.* 1,000,000 at most"):
        run(Toolbox([from_function(flood)]), "flood")
