"""A journal whose lines are whole, and that no turn can have written in this order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.answers import Turns
from tests.integration.test_replay import ran
from unified_flow.errors import RetrievalError
from unified_flow.turns.events import READER
from unified_flow.turns.fold import JournalOrderError, fold
from unified_flow.turns.journal import read
from unified_flow.turns.lock import JOURNAL


@pytest.fixture
def folder(home: Path, docs: Path) -> Path:
    ran(home, docs)
    return home / "shared_state/turns/turn_000001"


def test_a_value_that_no_phase_gives_is_named_by_whoever_reads_the_turn(folder: Path) -> None:
    events = list(read(folder))
    (place,) = [n for n, e in enumerate(events) if e.event == "phase_completed" and n < 8][:1]
    said = json.loads(events[place].model_dump_json()) | {"output": {"no": "such"}}
    events[place] = READER.validate_python(said)
    with pytest.raises(JournalOrderError, match="phase_completed of turn 1") as caught:
        fold(events)
    assert caught.value.event is events[place]
    assert caught.value.turn == fold(events[:place])


def test_a_turn_without_its_first_line_is_not_gone_on_with(folder: Path) -> None:
    path = folder / JOURNAL
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    turns = Turns(folder.parents[2])
    for look in (turns.load, turns.open):
        with pytest.raises(RetrievalError, match="line 1 is missing"):
            look(1)
