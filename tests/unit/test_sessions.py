"""What phase 7 keeps, and what phases 0 and 2 find of it."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from pathlib import Path

import pytest

from tests.answers import scripted_flow
from unified_flow.errors import RetrievalError
from unified_flow.sessions import SessionStore
from unified_flow.turn import Turn


def _ask(home: Path, session: str, question: str) -> Turn:
    return asyncio.run(scripted_flow(home, planner=_complete()).process(session, question))


def _complete() -> object:
    from tests.answers import COMPLETE

    return COMPLETE


@pytest.fixture
def store(home: Path) -> SessionStore:
    return SessionStore(home / "shared_state" / "sessions.sqlite3")


def test_nothing_saved_is_nothing_known(store: SessionStore) -> None:
    assert store.recent("s", before=99, limit=5) == []
    assert store.search("s", "topic", before=99, limit=5) == []
    assert not store.path.exists(), "reading creates nothing"


def test_earlier_turns_of_the_session_are_found_and_no_others(
    home: Path, store: SessionStore
) -> None:
    for session, question in [("a", "one?"), ("b", "two?"), ("a", "three?")]:
        _ask(home, session, question)
    assert [p.question for p in store.recent("a", before=99, limit=5)] == ["one?", "three?"]
    assert [p.question for p in store.recent("a", before=3, limit=5)] == ["one?"]
    found = store.search("a", "named bus", before=99, limit=5)
    assert {p.turn_id for p in found} == {1, 3}
    assert all(0 <= p.score <= 1 for p in found)


def test_saving_again_changes_nothing(home: Path, store: SessionStore) -> None:
    turn = _ask(home, "a", "one?")
    first, second = store.save(turn), store.save(turn)
    assert first == second
    assert all(uuid.UUID(message).version == 4 for message in first.message_ids)
    assert len(store.recent("a", before=99, limit=5)) == 1


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "a*", "NEAR(x", "col:x", ")(", "☃", "\0"])
def test_a_query_is_never_syntax(query: str, home: Path, store: SessionStore) -> None:
    _ask(home, "a", "one?")
    assert isinstance(store.search("a", query, before=99, limit=5), list)


def test_a_broken_store_is_a_failure_and_not_an_empty_history(store: SessionStore) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(b"no database " * 100)
    with pytest.raises(RetrievalError, match=r"sessions\.sqlite3") as raised:
        store.recent("a", before=99, limit=5)
    assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)
