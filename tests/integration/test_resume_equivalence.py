"""A turn that stops anywhere and goes on ends as one that never stopped.

The model is deterministic: its answer depends on the phase and on how often that phase has
completed, which it reads off the journal as a resumed turn must. Every call of a model, a tool or
a store is a place to stop at.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answers import (
    ANALYSIS,
    APPROVE,
    COMPLETE,
    DRAFT,
    PROCEED,
    QUESTION,
    every_phase_by_model,
    verdict,
)
from tests.servers.fixtures import VARIABLE
from unified_flow.errors.turns import NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.threads import wait_for
from unified_flow.models import ModelCall, ModelReply
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import ResumeResult, resume_turn
from unified_flow.shared.database import Database
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.stores import memory_store, session_store
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.turns.events import PhaseCompleted, ToolCompleted
from unified_flow.turns.file_store import FileTurnStore
from unified_flow.turns.fold import fold
from unified_flow.turns.journal import read
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.memory import MemoryStore
from unified_flow.turns.results import Memory, Plan, Reflection, Saved, ToolRequest
from unified_flow.turns.sections import written
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

Script = dict[str, list[Any]]
Stop = Callable[[], BaseException]


@dataclass
class World:
    """What the turn meets. `stops` maps the number of a call to what is raised instead of it."""

    turns: TurnStore
    script: Script
    stops: dict[int, Stop]
    calls: int = 0
    done: list[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.done = []

    def turn(self) -> Turn:
        return fold(wait_for(self.turns.read(1)))

    def call(self, name: str) -> None:
        self.calls += 1
        if self.calls in self.stops:
            raise self.stops[self.calls]()
        self.done.append(name)


@dataclass
class ByVisit:
    world: World
    name: str = "by_visit"

    async def complete(self, call: ModelCall) -> ModelReply:
        visit = self.world.turn().visit_number(call.phase)
        self.world.call(f"{call.phase} {visit}")
        answers = self.world.script[call.phase]
        return ModelReply(answers[min(visit, len(answers)) - 1].model_dump_json())

    async def aclose(self) -> None:
        return


class Memories(MemoryStore):
    world: World

    def knows(self, user_id: str) -> bool:
        return True

    def search(self, user_id: str, text: str, *, limit: int) -> list[Memory]:
        self.world.call("context_gatherer")
        return super().search(user_id, text, limit=limit)


class Word(Arguments):
    word: str


def flow_in(home: Path, world: World) -> UnifiedFlow:
    async def run(args: Word) -> ToolOutput:
        visit = world.turn().visit_number("coordinator")
        world.call(f"tool {visit} {args.word}")
        return ToolOutput(f"{args.word} in round {visit}")

    tools = [
        Tool(name, name, Word, frozenset({access}), run)
        for name, access in (("look", Access.READS), ("write", Access.WRITES))
    ]
    services = wire(
        home,
        extra_models={"by_visit": ByVisit(world)},
        model="by_visit",
        tools=tools,
        allow_tools=["*"],
        turns=world.turns,
    )
    memory = Memories(memory_store(home).texts)
    memory.world = world
    save = services.sessions.save

    def stopped_or_saved(turn: Turn) -> Saved:
        world.call("save")
        return save(turn)

    services.sessions.save = stopped_or_saved  # type: ignore[method-assign]
    return UnifiedFlow(replace(services, memory=memory))


@dataclass(frozen=True)
class Ended:
    """What a user could see of a turn, and what it did on the way."""

    status: str
    saved: bool
    response: str | None
    sections: dict[str, Any]
    visits: list[tuple[str, int]]
    stored: list[tuple[Any, ...]]
    done: list[str]


def ended(home: Path, turn: Turn, world: World) -> Ended:
    sections = written(turn.sections)
    for result in sections.get("coordinator", []):
        result["duration_ms"] = 0
    with closing(session_store(home)) as sessions:
        stored = [
            (each.turn_id, each.question, each.response, each.citations)
            for each in sessions.exchanges("s")
        ]
    visits = [(v.phase, v.number) for v in turn.visits if v.status == "completed"]
    return Ended(
        turn.status, turn.saved, turn.response, sections, visits, stored, sorted(world.done)
    )


def run(
    home: Path,
    script: Script,
    stops: dict[int, Stop],
    database: Database | None = None,
) -> tuple[Ended, World]:
    """The turn to its end, resumed as often as it stops; with a database in a shared home."""
    world = World(_turns(home, database), script, stops)

    async def go() -> Turn:
        async with flow_in(home, world) as flow:
            turn = await _one(flow.process("s", QUESTION, request_id="r"))
        for _ in stops:
            if turn is None or not turn.saved:
                resumed = await _one(_resume(home, world))
                turn = resumed.turn if resumed is not None else None
        return turn or world.turn()

    try:
        return ended(home, asyncio.run(go()), world), world
    finally:
        if isinstance(world.turns, PostgresTurnStore):
            world.turns.database.close()


def _turns(home: Path, database: Database | None = None) -> TurnStore:
    """They run in this process, wherever they are kept."""
    if database is None:
        return FileTurnStore(home / "shared_state/turns")
    tables = "turns, interventions, intervention_failures, session_turns, session_messages"
    with database.connection() as connection:
        connection.execute(f"TRUNCATE {tables} RESTART IDENTITY CASCADE".encode())
    home.mkdir()
    (home / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
    return PostgresTurnStore(database)


async def _resume(home: Path, world: World) -> ResumeResult:
    async with flow_in(home, world) as flow:
        return await resume_turn(flow, 1, ResumeRequest(rerun_tools=True))


async def _one(running: Any) -> Any:
    try:
        return await running
    except (PhaseError, asyncio.CancelledError):
        return None


def looks(*words: str, tool: str = "look") -> Plan:
    requests = [ToolRequest(tool=tool, args={"word": word}, goal_id=word) for word in words]
    return Plan(decision="EXECUTE", route="coordinator", tool_requests=requests)


def script(**over: Any) -> Script:
    # Abstained: what the verdict is stays the script's to say, not that of the check of citations.
    plain = DRAFT.model_copy(update={"abstained": True, "citations": []})
    drafts = [plain.model_copy(update={"response": f"draft {n}"}) for n in range(1, 9)]
    return {
        "query_analyzer": [ANALYSIS],
        "reflection": [PROCEED],
        "planner": [looks("a"), COMPLETE],
        "synthesis": drafts,
        "validation": [APPROVE],
        **over,
    }


SCRIPTS: dict[str, Script] = {
    "straight": script(planner=[COMPLETE]),
    "three tools in one round": script(planner=[looks("a", "b", "c"), COMPLETE]),
    "three rounds": script(planner=[looks("a"), looks("b", "c"), looks("a"), COMPLETE]),
    "a tool that writes": script(planner=[looks("a", "b", tool="write"), COMPLETE]),
    "revise twice": script(validation=[verdict("REVISE"), verdict("REVISE"), APPROVE]),
    "retry": script(
        planner=[looks("a"), COMPLETE, looks("b"), COMPLETE],
        validation=[verdict("RETRY"), APPROVE],
    ),
    "revise, then retry": script(
        planner=[looks("a"), COMPLETE, looks("b"), COMPLETE],
        validation=[verdict("REVISE"), verdict("RETRY"), APPROVE],
    ),
    "a question back": script(
        reflection=[
            Reflection(decision="CLARIFY", confidence=1.0, clarification_question="Which one?")
        ]
    ),
}
IN_BOTH_HOMES = "three tools in one round"
# The others stop at no other place than one of these, or than the row of both homes.
RICHEST = ["three rounds", "a tool that writes", "revise, then retry", "a question back"]
FAILURE: Stop = partial(RuntimeError, "it is down")
INTERRUPT: Stop = asyncio.CancelledError
SOAK = bool(os.environ.get("SOAK"))


@pytest.mark.parametrize("stop", [FAILURE, INTERRUPT], ids=["failure", "interrupt"])
@pytest.mark.parametrize("name", SCRIPTS if SOAK else RICHEST)
def test_stopped_at_every_call_in_turn(name: str, stop: Stop, tmp_path: Path) -> None:
    """Each model call, each tool call, each use of a store; and nothing is done twice."""
    must_end_as_one_that_never_stopped(SCRIPTS[name], stop, tmp_path)


@pytest.mark.parametrize("stop", [FAILURE, INTERRUPT], ids=["failure", "interrupt"])
@pytest.mark.parametrize("name", SCRIPTS if SOAK else [IN_BOTH_HOMES])
def test_stopped_at_every_call_in_a_shared_home(
    name: str, stop: Stop, tmp_path: Path, database_url: str
) -> None:
    with closing(Database(database_url, "the database of the test")) as database:
        must_end_as_one_that_never_stopped(SCRIPTS[name], stop, tmp_path, database)


def must_end_as_one_that_never_stopped(
    script: Script, stop: Stop, folder: Path, database: Database | None = None
) -> None:
    never, world = run(folder / "never", script, {}, database)
    for place in range(1, world.calls + 1):
        again, _ = run(folder / f"at{place}", script, {place: stop}, database)
        assert again == never, f"stopped at call {place}"


PLANS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda words: looks(*words)),
    max_size=2,
).map(lambda rounds: [*rounds, COMPLETE])
VERDICTS = st.sampled_from(
    [[], ["REVISE"], ["RETRY"], ["REVISE", "REVISE"], ["RETRY", "REVISE"], ["REVISE", "RETRY"]]
)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    verdicts = draw(VERDICTS)
    rounds = draw(PLANS) + (draw(PLANS) if "RETRY" in verdicts else [])
    return script(planner=rounds, validation=[*map(verdict, verdicts), APPROVE])


@given(
    script=scripts(),
    stops=st.dictionaries(
        st.integers(1, 25), st.sampled_from([FAILURE, INTERRUPT]), min_size=1, max_size=4
    ),
)
@settings(max_examples=100 if SOAK else 12, deadline=None)
def test_whatever_stops_it_however_often(script: Script, stops: dict[int, Stop]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        never, _ = run(Path(folder) / "never", script, {})
        again, _ = run(Path(folder) / "again", script, stops)
        assert again == never


@every_phase_by_model
@given(script=scripts(), cuts=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
@settings(max_examples=50 if SOAK else 10, deadline=None)
def test_a_journal_that_ends_anywhere(script: Script, cuts: list[float]) -> None:
    """As a kill leaves it: some lines, and perhaps a part of the next one."""
    with tempfile.TemporaryDirectory() as folder:
        never, _ = run(Path(folder) / "never", script, {})
        for number, cut in enumerate(cuts):
            home = Path(folder) / f"cut{number}"
            shutil.copytree(Path(folder) / "never", home)
            must_go_on_where_its_journal_ends(home, cut, script, never)


def must_go_on_where_its_journal_ends(home: Path, cut: float, script: Script, never: Ended) -> None:
    journal = home / "shared_state/turns/turn_000001" / JOURNAL
    whole = journal.read_bytes()
    first = whole.index(b"\n") + 1
    journal.write_bytes(whole[: first + int(cut * (len(whole) - first))])
    kept = _completed(journal.parent)
    world = World(_turns(home), script, {})
    try:
        asyncio.run(_resume(home, world))
    except NotResumableError:
        assert cut == 1.0
    turn = fold(read(journal.parent))
    assert replace(ended(home, turn, world), done=never.done) == never
    # Counted, since one round may ask for the same call twice.
    assert kept + Counter(world.done) == Counter(never.done), "nothing is lost or done again"


def _completed(folder: Path) -> Counter[str]:
    """The calls whose end a journal holds, by the names of `World.call`."""
    done = Counter[str]()
    for event in read(folder):
        if isinstance(event, PhaseCompleted) and event.phase != "coordinator":
            alone = event.phase in ("context_gatherer", "save")
            done[event.phase if alone else f"{event.phase} {event.visit}"] += 1
        elif isinstance(event, ToolCompleted):
            word, _, visit = event.output["result"].partition(" in round ")
            done[f"tool {visit} {word}"] += 1
    return done
