"""What phase 7 keeps, and what phases 0 and 2 find of it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.answers import DRAFT, scripted_flow
from unified_flow.errors import RetrievalError
from unified_flow.errors.sqlite import failures, is_locked
from unified_flow.turns.sessions import SessionStore, session_file
from unified_flow.turns.turn import Turn


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
    assert "aside" in str(raised.value.hint)


def test_a_store_that_another_process_holds_is_waited_for_and_never_put_aside(
    home: Path, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = _ask(home, "a", "one?")
    monkeypatch.setattr(session_file, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RetrievalError, match="is locked by another process") as raised:
            store.save(replace(turn, turn_id=turn.turn_id + 1, request_id="another"))
        assert str(raised.value.hint).startswith("Wait")
        assert is_locked(raised.value.__cause__)
    assert len(store.recent("a", before=99, limit=5)) == 1


def test_a_message_that_is_delivered_again_is_kept_once_and_answered_as_it_was(
    home: Path, store: SessionStore
) -> None:
    flow = scripted_flow(home, planner=_complete(), synthesis=[DRAFT])  # it has one answer to give

    async def deliver(**over: str) -> Turn:
        message = {"session_id": "a", "message": "same?", "request_id": "r-1"} | over
        return await flow.process(**message)

    first, again = asyncio.run(deliver()), asyncio.run(deliver())
    assert (again.turn_id, again.response) == (first.turn_id, DRAFT.response)
    assert len(store.recent("a", before=99, limit=5)) == 1
    log = (home / "logs" / "rag_queries.jsonl").read_text().splitlines()
    assert [json.loads(line)["turn_id"] for line in log] == [1, 1]


def test_other_words_under_one_request_are_another_message(home: Path, store: SessionStore) -> None:
    flow = scripted_flow(home, planner=_complete())

    async def talk() -> list[Turn]:
        said = [
            ("a", "one?", "ada"),
            ("a", "two?", "ada"),
            ("b", "one?", "ada"),
            ("a", "one?", "bob"),
        ]
        return [
            await flow.process(session, text, user_id=user, request_id="r-1")
            for session, text, user in said
        ]

    assert [turn.turn_id for turn in asyncio.run(talk())] == [1, 2, 3, 4]
    assert [each.question for each in store.recent("a", before=99, limit=5)] == [
        "one?",
        "two?",
        "one?",
    ]


def test_a_message_delivered_twice_at_once_is_kept_once(home: Path, store: SessionStore) -> None:
    flow = scripted_flow(home, planner=_complete())

    async def both() -> list[Turn]:
        two = [flow.process("a", "same?", request_id="r-1") for _ in range(2)]
        return await asyncio.gather(*two)

    turns = asyncio.run(both())
    assert {turn.response for turn in turns} == {DRAFT.response}
    assert len(store.recent("a", before=99, limit=5)) == 1
    with closing(sqlite3.connect(store.path)) as kept:
        assert kept.execute("SELECT count(*) FROM messages").fetchone() == (2,)


def test_a_turn_takes_back_what_it_kept_and_nothing_else(home: Path, store: SessionStore) -> None:
    first, second = _ask(home, "a", "one?"), _ask(home, "a", "two?")
    assert store.take_back(replace(first, question="In other words?")) == 2
    assert [each.question for each in store.recent("a", before=99, limit=5)] == ["two?"]
    assert store.take_back(second) == 2


def test_a_read_only_file_system_is_no_matter_of_access(tmp_path: Path) -> None:
    with (
        pytest.raises(RetrievalError, match="Read-only file system") as refused,
        failures(tmp_path / "s.sqlite3", "the session store", broken=""),
    ):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    assert refused.value.hint == "mount it for writing, or name another home with --home"
