"""The journal on disk: whole lines, torn lines, large values, names that are taken once."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from unified_flow.errors import RetrievalError
from unified_flow.events import ModelCalled, ToolStarted, TurnStarted
from unified_flow.journal import NAME, POINTER, Journal, TurnFolders, read

STARTED = TurnStarted(
    turn_id=1,
    session_id="s",
    request_id="r",
    user_id="u",
    channel=None,
    question="q",
    policy="fail_fast",
    config_digest="c",
)


def _reply(text: str) -> ModelCalled:
    return ModelCalled(phase="planner", model="m", request_digest="d", reply=text, duration_ms=1.0)


def _write(folder: Path, *events: object) -> None:
    journal = Journal(folder)
    for event in events:
        journal.append(event)
    journal.close()


@pytest.mark.parametrize(
    "text", ["plain", "half a pair \ud800 of surrogates", "\0\x1b[31m", "日本語", "x" * 200_000]
)
def test_what_a_model_said_comes_back_the_same(text: str, tmp_path: Path) -> None:
    _write(tmp_path, STARTED, _reply(text))
    _, event = read(tmp_path)
    assert isinstance(event, ModelCalled)
    assert event.reply == text


def test_a_large_value_lies_whole_in_a_file_of_its_own(tmp_path: Path) -> None:
    _write(tmp_path, _reply("x" * 200_000))
    line = (tmp_path / NAME).read_text()
    assert len(line) < 2000
    (large,) = [path for path in tmp_path.iterdir() if path.name != NAME]
    assert large.name == json.loads(line)["reply"][POINTER]
    assert stat.S_IMODE(large.stat().st_mode) == 0o600


def test_arguments_that_look_like_a_pointer_stay_arguments(tmp_path: Path) -> None:
    secret = tmp_path.parent / "secret"
    secret.write_text('"hidden"')
    args = {POINTER: "../secret"}
    _write(
        tmp_path,
        ToolStarted(phase="coordinator", call=0, tool="t", goal_id="", args=args, access=[]),
    )
    (event,) = read(tmp_path)
    assert isinstance(event, ToolStarted)
    assert event.args == args


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_dropped(cut: int, tmp_path: Path) -> None:
    _write(tmp_path, STARTED, _reply("kept"), _reply("torn"))
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-cut])
    assert [event.event for event in read(tmp_path)] == ["turn_started", "model_called"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    _write(tmp_path, STARTED, _reply("a"), _reply("b"))
    path = tmp_path / NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0\0garbage\n" + lines[2])
    with pytest.raises(RetrievalError, match=rf"{NAME}:2: the journal is damaged"):
        list(read(tmp_path))


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, STARTED.model_copy(update={"version": 99}))
    with pytest.raises(RetrievalError, match="version 99"):
        list(read(tmp_path))


def test_fields_of_a_newer_version_are_kept(tmp_path: Path) -> None:
    _write(tmp_path, STARTED.model_copy(update={"mood": "good"}))
    (event,) = read(tmp_path)
    assert event.model_extra == {"mood": "good"}


def _take(root: Path, count: int, taken: multiprocessing.Queue[int]) -> None:
    folders = TurnFolders(root)
    for _ in range(count):
        taken.put(folders.create()[0])


def test_no_two_processes_take_the_same_turn(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    taken: multiprocessing.Queue[int] = context.Queue()
    writers = [context.Process(target=_take, args=(tmp_path, 50, taken)) for _ in range(3)]
    for writer in writers:
        writer.start()
    ids = sorted(taken.get(timeout=60) for _ in range(150))
    for writer in writers:
        writer.join()
    assert ids == list(range(1, 151))


def test_state_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        _, folder = TurnFolders(tmp_path / "turns").create()
        _write(folder, STARTED)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
