"""What writes is done at most once: a call whose effect is unknown is a person's to repeat."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answers import COMPLETE, NOTHING_CLAIMED, every_phase_by_model
from tests.integration import test_resume
from tests.integration.test_resume import BROKEN, ask, resume
from unified_flow.errors.turns import NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.phases import errors as phase_errors
from unified_flow.policies import Bounds, Failure, Retry, Stop
from unified_flow.tools import Access, Arguments, Tool, ToolOutput, current_caller
from unified_flow.turns.results import Plan, ToolRequest
from unified_flow.turns.turn import Turn

pytestmark = every_phase_by_model


def make(home: Path, docs: None, **over: Any) -> UnifiedFlow:
    return test_resume.make(home, docs, **{"synthesis": NOTHING_CLAIMED, **over})


async def cancelled() -> None:
    """As Ctrl-C does it: from outside of the tool."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


class Text(Arguments):
    text: str


def writer(path: Path, then: BaseException | None = None) -> Tool:
    """A tool that writes, and may be cut off when it has."""

    async def run(args: Text) -> ToolOutput:
        with path.open("a") as file:
            file.write(args.text)
        if isinstance(then, asyncio.CancelledError):
            await cancelled()
        if then is not None:
            raise then
        return ToolOutput("written")

    access = frozenset({Access.WRITES})
    return Tool("note.write", "writes", Text, access, run)


WRITE = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[ToolRequest(tool="note.write", args={"text": "once "})],
)


def test_a_write_that_was_cut_off_is_asked_about(home: Path, tmp_path: Path) -> None:
    written = tmp_path / "written"
    cut = make(home, None, planner=WRITE, tools=[writer(written, asyncio.CancelledError())])
    with pytest.raises(asyncio.CancelledError):
        ask(cut)
    flow = make(home, None, planner=COMPLETE, tools=[writer(written)])
    with pytest.raises(NotResumableError, match=r"note\.write had begun to write"):
        resume(flow)
    assert written.read_text() == "once "
    assert resume(flow, rerun_tools=True).turn.status == "answered"
    assert written.read_text() == "once once "


def test_a_call_has_the_same_key_when_it_is_made_again(home: Path) -> None:
    """The tool can tell a call that was cut off from another one, also by the same words."""
    keys: list[str] = []
    rounds = iter([False, True])

    async def run(args: Text) -> ToolOutput:
        keys.append(current_caller().call_id)
        if next(rounds, False):
            await cancelled()
        return ToolOutput("written")

    tools = [Tool("note.write", "writes", Text, frozenset({Access.WRITES}), run)]
    with pytest.raises(asyncio.CancelledError):
        ask(make(home, None, planner=[WRITE, WRITE], tools=tools))
    flow = make(home, None, planner=COMPLETE, tools=tools)
    assert resume(flow, rerun_tools=True).turn.status == "answered"
    ask(make(home, None, planner=[WRITE, COMPLETE], tools=tools))
    first, cut_off, again, other_turn = keys
    assert cut_off == again
    assert len({first, cut_off, other_turn, ""}) == 4


def test_a_write_that_is_done_is_not_done_again(home: Path, tmp_path: Path) -> None:
    written = tmp_path / "written"
    ask(make(home, None, planner=[WRITE, BROKEN], tools=[writer(written)]))
    flow = make(home, None, planner=COMPLETE, tools=[writer(written)])
    with pytest.raises(NotResumableError, match=r"note\.write has written in turn 1"):
        resume(flow, from_phase="planner")
    assert resume(flow).turn.status == "answered"
    assert written.read_text() == "once "


@pytest.mark.parametrize(
    "error", [OSError, RuntimeError, ConnectionResetError, TimeoutError, ValueError]
)
def test_a_write_that_raised_anything_may_have_written(
    error: type[Exception], home: Path, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    ask(make(home, None, planner=WRITE, tools=[writer(written, error("no reply"))]))
    flow = make(home, None, planner=COMPLETE, tools=[writer(written)])
    with pytest.raises(NotResumableError, match=r"note\.write had begun to write"):
        resume(flow)
    assert written.read_text() == "once "
    assert resume(flow, tools_done=True).turn.status == "answered"
    assert written.read_text() == "once "


@pytest.fixture
def little_room() -> Iterator[Callable[[int], None]]:
    """From the call on, no file of this process gets longer than that: a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_whose_result_finds_no_room_has_still_written(
    little_room: Callable[[int], None], home: Path, tmp_path: Path
) -> None:
    written = tmp_path / "written"

    async def run(args: Text) -> ToolOutput:
        written.write_text(args.text)
        little_room(100_000)
        return ToolOutput("x" * 200_000)

    tool = Tool("note.write", "writes", Text, frozenset({Access.WRITES}), run)
    failed = ask(make(home, None, planner=WRITE, tools=[tool]))
    assert isinstance(failed, phase_errors.CoordinatorError)
    with pytest.raises(NotResumableError, match=r"note\.write had begun to write"):
        resume(make(home, None, planner=COMPLETE, tools=[writer(written)]))
    assert written.read_text() == "once "


def test_a_policy_that_tries_again_does_not_repeat_a_write(home: Path, tmp_path: Path) -> None:
    class Again:
        name = "again"
        bounds = Bounds()

        def again(self, failure: Failure) -> Retry | None:
            return Retry(0.0) if failure.attempt < 3 else None

        def ends(self, failure: Failure) -> Stop:
            return Stop("silence")

    written = tmp_path / "written"
    flow = make(home, None, planner=WRITE, tools=[writer(written, OSError("no reply"))])
    ended = ask(UnifiedFlow(replace(flow.services, policy=Again())))
    assert written.read_text() == "once "
    # What its user is told is the policy's to say, now as after the last try.
    assert isinstance(ended, Turn)
    assert not ended.should_respond


def look(then: BaseException | None = None) -> Tool:
    async def run(args: Text) -> ToolOutput:
        if isinstance(then, asyncio.CancelledError):
            await cancelled()
        if then is not None:
            raise then
        return ToolOutput("seen")

    return Tool("look", "reads", Text, frozenset({Access.READS}), run)


def planned(*words: str) -> Plan:
    """A request for each word: `look` reads, all others are written."""
    requests = [
        ToolRequest(tool="look" if word == "look" else "note.write", args={"text": f"{word} "})
        for word in words
    ]
    return Plan(decision="EXECUTE", route="coordinator", tool_requests=requests)


@given(
    before=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
    after=st.lists(st.sampled_from(["a", "b", "c", "look"]), min_size=1, max_size=4),
)
@settings(max_examples=10, deadline=None)
def test_an_edited_plan_repeats_no_finished_write(before: list[str], after: list[str]) -> None:
    """Wherever the edited plan makes the request: one before it, another order, less of them."""
    with tempfile.TemporaryDirectory() as folder:
        home, written = Path(folder) / "home", Path(folder) / "written"
        written.touch()
        plan = planned(*before, "look")
        ask(make(home, None, planner=plan, tools=[writer(written), look(BROKEN)]))
        assert written.read_text().split() == before
        edited = {"planner": planned(*after).model_dump(mode="json")}
        flow = make(home, None, planner=COMPLETE, tools=[writer(written), look()])
        resumed = resume(flow, edited=edited)
        assert resumed.turn.status == "answered"
        wanted = Counter(word for word in after if word != "look")
        assert Counter(written.read_text().split()) == Counter(before) | wanted
        goals = [result.tool for result in resumed.turn.sections.coordinator]
        assert goals == [request.tool for request in planned(*after).tool_requests]


def test_what_a_person_says_was_done_is_done_wherever_it_is_asked_for(
    home: Path, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    cut = writer(written, asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        ask(make(home, None, planner=planned("once"), tools=[cut, look()]))
    edited = {"planner": planned("look", "once").model_dump(mode="json")}
    flow = make(home, None, planner=COMPLETE, tools=[writer(written), look()])
    resumed = resume(flow, tools_done=True, edited=edited)
    assert resumed.turn.status == "answered"
    assert written.read_text() == "once "
    first, second = resumed.turn.sections.coordinator
    assert first.result == "seen"
    assert str(second.result).startswith("done, as ")


def test_a_leave_is_kept_only_if_the_turn_goes_on(
    little_room: Callable[[int], None], home: Path, tmp_path: Path
) -> None:
    written = tmp_path / "written"

    def gated() -> UnifiedFlow:
        return make(home, None, planner=WRITE, tools=[writer(written)], allow_tools=[])

    assert isinstance(ask(gated()), phase_errors.CoordinatorError)
    journal = home / "shared_state/turns/turn_000001/journal.jsonl"
    before = journal.read_bytes()
    little_room(len(before))
    with pytest.raises(NotResumableError, match="cannot be written") as refused:
        resume(gated(), grant="always")
    assert "nothing has happened" in refused.value.hint
    assert journal.read_bytes() == before
    assert not (home / "shared_state/grants.json").exists()
