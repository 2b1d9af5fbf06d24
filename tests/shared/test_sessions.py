"""What was said on all machines, searched while others change it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.answers import COMPLETE, scripted_flow
from unified_flow.shared.database import Connection, Database
from unified_flow.shared.sessions import SharedSessions
from unified_flow.turns.turn import Turn


class BusyDatabase(Database):
    """Whenever rows were read, another machine changes something."""

    change: Callable[[], object]

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        change = self.change

        class BusyConnection(psycopg.Connection[Any]):
            def execute(self, *args: Any, **kwargs: Any) -> Any:
                cursor = super().execute(*args, **kwargs)
                if cursor.description is not None:
                    change()
                return cursor

        with self.connect(kind=BusyConnection) as connection:
            yield connection


@pytest.fixture
def turn(home: Path) -> Turn:
    return asyncio.run(scripted_flow(home, planner=COMPLETE).process("a", "one?"))


@pytest.mark.parametrize("change", ["save", "take back"])
def test_what_others_change_during_a_search_does_not_change_what_it_finds(
    change: str, turn: Turn, database: Database, database_url: str
) -> None:
    sessions = SharedSessions(database)
    sessions.save(turn)
    before = sessions.search("a", "named bus", before=99, limit=5)
    assert [found.turn_id for found in before] == [turn.turn_id]
    more = (replace(turn, turn_id=n, request_id=str(n), session_id="b") for n in count(2))

    busy = BusyDatabase(database_url, "the database of the test")
    changes = {
        "save": lambda: sessions.save(next(more)),
        "take back": lambda: sessions.take_back(turn),
    }
    busy.change = changes[change]
    assert SharedSessions(busy).search("a", "named bus", before=99, limit=5) == before
    ((turns,),) = database.rows("SELECT count(*) FROM session_turns")
    assert turns > 1 if change == "save" else turns == 0
