"""The same of every place that conversations are kept in: SQLite's file, and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.answers import COMPLETE, scripted_flow
from unified_flow.shared.database import Database
from unified_flow.shared.sessions import SharedSessions
from unified_flow.turns.sessions import Sessions, SessionStore
from unified_flow.turns.turn import Turn

WORDS = ["bus", "buses", "named_bus", "3.14", "3", "naïve", "ÅNGSTRÖM", "東京都", "fooBar", "foo_"]
ANY = 10**9


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Turn:
    flow = scripted_flow(tmp_path_factory.mktemp("home"), planner=COMPLETE)
    return asyncio.run(flow.process("a", "one?"))


def said(turn: Turn, turn_id: int, response: str, session: str = "a", **fields: str) -> Turn:
    """Another answered turn."""
    assert turn.sections.synthesis is not None
    draft = turn.sections.synthesis.model_copy(update={"response": response})
    sections = replace(turn.sections, synthesis=draft)
    about = {"request_id": f"r-{turn_id}", **fields}
    return replace(turn, turn_id=turn_id, session_id=session, sections=sections, **about)


@pytest.fixture
def both(home: Path, database_url: str) -> Iterator[tuple[Sessions, Sessions]]:
    with ExitStack() as closes:
        database = closes.enter_context(closing(Database(database_url, "it")))
        file = closes.enter_context(closing(SessionStore.of(home)))
        yield file, SharedSessions(database)


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, both: tuple[Sessions, Sessions]) -> Sessions:
    return both[request.param == "postgres"]


def test_what_was_said_is_found_in_its_session_alone(store: Sessions, answered: Turn) -> None:
    assert store.recent("a", before=99, limit=5) == []
    assert store.search("a", "bus", before=99, limit=5) == []
    for number, session in enumerate("aba", 1):
        store.save(said(answered, number, f"bus number {number}", session))
    assert [prior.turn_id for prior in store.recent("a", before=99, limit=5)] == [1, 3]
    assert [prior.turn_id for prior in store.recent("a", before=3, limit=5)] == [1]
    assert {prior.turn_id for prior in store.search("a", "bus", before=99, limit=5)} == {1, 3}
    assert store.search("a", "bus", before=1, limit=5) == []
    assert store.user_of("a") == answered.user_id
    assert store.user_of("nobody") is None
    summaries = {each.session_id: (each.turns, each.opening) for each in store.sessions(ANY)}
    assert summaries == {"a": (2, answered.question), "b": (1, answered.question)}
    assert [each.session_id for each in store.sessions(1)] == ["a"]
    assert [each.response for each in store.exchanges("a")] == ["bus number 1", "bus number 3"]
    assert store.exchanges("a")[0].citations == list(answered.citations)
    assert store.forget("a") == 2
    assert store.forget("a") == 0
    assert [each.session_id for each in store.sessions(ANY)] == ["b"]


def test_a_turn_is_kept_once_and_a_message_with_the_turn_that_was_first(
    store: Sessions, answered: Turn
) -> None:
    turn = said(answered, 1, "bus")
    assert store.save(turn).message_ids == store.save(turn).message_ids
    again = said(answered, 2, "another answer", request_id=turn.request_id)
    store.save(again)
    assert [prior.answer for prior in store.recent("a", before=99, limit=5)] == ["bus"]
    message = (turn.session_id, turn.request_id, turn.user_id, turn.question)
    assert store.answered(*message) == 1
    assert store.answered("another", *message[1:]) is None
    assert store.take_back(again) == 0
    other_words = replace(turn, question="in other words?")
    store.save(other_words)
    assert store.answered(*message) is None
    assert store.take_back(other_words) == 2
    assert store.recent("a", before=99, limit=5) == []
    assert store.take_back(other_words) == 0


def test_a_message_that_is_saved_twice_at_once_is_kept_once(
    store: Sessions, answered: Turn
) -> None:
    turns = [said(answered, n, f"answer {n}", request_id="r") for n in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.save, turns))
    assert len(store.recent("a", before=99, limit=99)) == 1


def test_what_no_database_holds_as_it_is_comes_back(store: Sessions, answered: Turn) -> None:
    store.save(said(answered, 1, "null \0 and å \u2028"))
    assert store.exchanges("a")[0].response == "null \0 and å \u2028"


text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
answers = st.lists(st.tuples(st.sampled_from("ab"), text), min_size=1, max_size=8)


@given(answers=answers, asked=text)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_scores_are_those_of_one_machine(
    both: tuple[Sessions, Sessions], answered: Turn, answers: list[tuple[str, str]], asked: str
) -> None:
    found = []
    for store in both:
        for number, (session, response) in enumerate(answers, 1):
            store.save(said(answered, number, response, session))
        priors = store.search("a", asked, before=99, limit=5)
        found.append([(prior.turn_id, prior.answer, prior.score) for prior in priors])
        for session in "ab":
            store.forget(session)
    alone, together = found
    assert [row[:2] for row in alone] == [row[:2] for row in together]
    assert [row[2] for row in alone] == pytest.approx([row[2] for row in together], rel=1e-9)
