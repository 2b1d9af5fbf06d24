"""The journal on disk: whole lines, torn lines, large values, names that are taken once."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import forked
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError
from unified_flow.lib.threads import wait_for
from unified_flow.turns import lock as turn_lock
from unified_flow.turns.blobs import UNFINISHED
from unified_flow.turns.events import (
    AnyEvent,
    ModelCalled,
    Runner,
    ToolStarted,
    TurnResumed,
    TurnStarted,
)
from unified_flow.turns.file_store import FileTurnStore
from unified_flow.turns.journal import POINTER, Journal, read
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.lines import digest, sealed
from unified_flow.turns.lock import JOURNAL

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


def _write(folder: Path, *events: AnyEvent) -> None:
    journal = Journal(folder, create=not (folder / JOURNAL).exists())
    journal.write(events, durable=False)
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
    line = (tmp_path / JOURNAL).read_text()
    assert len(line) < 2000
    (large,) = [path for path in tmp_path.iterdir() if path.name != JOURNAL]
    assert large.name == json.loads(line)["reply"][POINTER]
    assert stat.S_IMODE(large.stat().st_mode) == 0o600


BIG = "x" * 200_000


def test_what_a_fork_copies_is_one_line_and_is_read_as_events(tmp_path: Path) -> None:
    copied = [_reply("a").model_dump(mode="json"), _reply(BIG).model_dump(mode="json")]
    _write(tmp_path, STARTED.model_copy(update={"copied": copied}), _reply("b"))
    first, *replies = read(tmp_path)
    assert first == STARTED
    assert [event.reply for event in replies if isinstance(event, ModelCalled)] == ["a", BIG, "b"]
    assert (tmp_path / JOURNAL).read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("kept", [0, 5_000, 199_999])
def test_half_a_value_is_not_taken_for_the_whole(kept: int, tmp_path: Path) -> None:
    """What a full disk or the death of the machine can leave under the right name."""
    (tmp_path / digest(BIG)).write_bytes(json.dumps(BIG).encode()[:kept])
    _write(tmp_path, _reply(BIG))
    (event,) = read(tmp_path)
    assert isinstance(event, ModelCalled)
    assert event.reply == BIG


def test_a_value_that_was_changed_by_hand_is_damage_and_is_mended(tmp_path: Path) -> None:
    _write(tmp_path, _reply(BIG))
    large = tmp_path / digest(BIG)
    large.write_bytes(large.read_bytes().replace(b"x", b"y"))
    with pytest.raises(RetrievalError, match=r"jsonl:1: .* is not what was written"):
        list(read(tmp_path))
    _write(tmp_path, _reply(BIG))
    assert len(list(read(tmp_path))) == 2


ROOM = """
import resource, sys
from pathlib import Path
from tests.unit.test_journal import BIG, _reply
from unified_flow.turns.journal import Journal
journal = Journal(Path(sys.argv[1]), create=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    journal.write([_reply(BIG)], durable=False)
except OSError:
    print("full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(sorted(path.name for path in Path(sys.argv[1]).iterdir()))
journal.write([_reply(BIG)], durable=False)
journal.close()
"""


def test_a_value_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    done = forked.run(
        [sys.executable, "-c", ROOM, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["full", "['journal.jsonl']"], done.stderr
    (event,) = read(tmp_path)
    assert isinstance(event, ModelCalled)
    assert event.reply == BIG


def test_what_a_dead_process_had_not_finished_is_swept(tmp_path: Path) -> None:
    _write(tmp_path, STARTED)
    (tmp_path / f"abc{UNFINISHED}").write_bytes(b"half")
    journal = Journal(tmp_path, create=False)
    journal.write([_reply("a")], durable=False)
    journal.close()
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]


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
    path = tmp_path / JOURNAL
    path.write_bytes(path.read_bytes()[:-cut])
    assert [event.event for event in read(tmp_path)] == ["turn_started", "model_called"]


@pytest.mark.parametrize("length", [10, 64 * 1024, 200_000])
def test_what_follows_a_torn_line_is_a_line_of_its_own(length: int, tmp_path: Path) -> None:
    _write(tmp_path, STARTED)
    with (tmp_path / JOURNAL).open("ab") as torn:
        torn.write(b"{" + b"x" * length)
    journal = Journal(tmp_path, create=False)
    journal.write([_reply("after")], durable=False)
    journal.close()
    assert [event.event for event in read(tmp_path)] == ["turn_started", "model_called"]


def _tool(access: str, args: str = "") -> ToolStarted:
    given = {"text": args}
    return ToolStarted(
        phase="coordinator", call=0, tool="t", goal_id="", args=given, access=[access]
    )


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(name, size) of whatever is made durable, in order."""
    seen: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        seen.append((name, os.fstat(descriptor).st_size))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


def test_a_write_is_on_disk_before_it_starts_with_the_names(
    synced: list[tuple[str, int]], tmp_path: Path
) -> None:
    lease = wait_for(FileTurnStore(tmp_path / "turns").create())
    folder = tmp_path / "turns" / "turn_000001"
    wait_for(lease.append(STARTED))
    wait_for(lease.append(_tool("reads")))
    assert synced == []
    wait_for(lease.append(_tool("writes")))
    whole = (folder / JOURNAL).stat().st_size
    assert whole == len((folder / JOURNAL).read_bytes())
    assert (folder / JOURNAL).read_bytes().count(b"\n") == 3
    names = [name for name, _ in synced]
    assert synced[0] == (JOURNAL, whole)
    assert names[1:] == ["turn_000001", "turns"]
    wait_for(lease.append(_tool("writes")))
    assert [name for name, _ in synced[3:]] == [JOURNAL], "the names are durable once for all"
    wait_for(lease.release())


def test_a_large_value_is_on_disk_before_the_line_that_names_it(
    synced: list[tuple[str, int]], tmp_path: Path
) -> None:
    journal = Journal(tmp_path, create=True)
    journal.write([_tool("writes", BIG)], durable=True)
    journal.close()
    first, second, third, *_ = synced
    assert (first[0].endswith(UNFINISHED), first[1] > len(BIG)) == (True, True)
    assert (second[0], third[0]) == (tmp_path.name, JOURNAL)


def test_a_turn_is_free_when_its_runner_is_done_whoever_was_forked(tmp_path: Path) -> None:
    journal = Journal(tmp_path, create=True)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # it lives on, and must not keep the turn
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        with pytest.raises(BlockingIOError):
            Journal(tmp_path, create=False)
        journal.close()
        Journal(tmp_path, create=False).close()
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def test_a_child_neither_writes_nor_keeps_its_parent_s_journal(tmp_path: Path) -> None:
    folder = tmp_path / "turns" / "turn_000001"
    lease = asyncio.run(FileTurnStore(tmp_path / "turns").create())
    asyncio.run(lease.append(STARTED))
    child = os.fork()
    if not child:
        asyncio.run(lease.release())
        os._exit(int((folder / JOURNAL).stat().st_size > 0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(BlockingIOError):
        Journal(folder, create=False)
    asyncio.run(lease.release())
    assert len(list(read(folder))) == 1


def test_a_look_at_a_turn_keeps_nobody_from_it(tmp_path: Path) -> None:
    _write(tmp_path, STARTED)
    path = tmp_path / JOURNAL
    looking = os.open(path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(turn_lock.PAUSE_S / 2, os.close, [looking]).start()
    with path.open("rb+") as journal:
        turn_lock.take(journal.fileno(), path)
        assert turn_lock.is_held(path)


def test_a_turn_that_is_gone_is_not_created_by_going_on_with_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Journal(tmp_path / "turn_000001", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    _write(tmp_path, STARTED, _reply("a"), _reply("b"))
    path = tmp_path / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0\0garbage\n" + lines[2])
    with pytest.raises(RetrievalError, match=rf"{JOURNAL}:2: the journal is damaged"):
        list(read(tmp_path))


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_no_flipped_bit_is_gone_on_with(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, STARTED, _reply("a"), _reply("b"))
        path = folder / JOURNAL
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        try:
            kept = [event.event for event in read(folder)]
        except RetrievalError:
            return
        assert kept == ["turn_started", "model_called"], "only a last line may be taken for torn"


def test_a_line_that_is_gone_doubled_or_moved_is_told_as_that(tmp_path: Path) -> None:
    _write(tmp_path, STARTED, *map(_reply, "abcde"))
    path = tmp_path / JOURNAL
    one, two, three, four, five, six = path.read_bytes().splitlines(keepends=True)
    for lines, told in (
        ([one, two, four, five, six], "jsonl:3: .*line 3 is missing"),
        ([one, two, five, six], "jsonl:3: .*lines 3 to 4 are missing"),
        ([two, three], "jsonl:1: .*line 1 is missing"),
        ([one, two, three, three, four], "jsonl:4: .*line 3 stands there again"),
        ([one, two, four, three, five], "jsonl:3: .*line 4 stands before line 3"),
    ):
        path.write_bytes(b"".join(lines))
        with pytest.raises(RetrievalError, match=told):
            list(read(tmp_path))


def test_lines_are_numbered_on_over_whatever_stopped(tmp_path: Path) -> None:
    journal = tmp_path / "turns" / "turn_000001" / JOURNAL
    _write(journal.parent, STARTED, _reply("a"))
    with journal.open("ab") as torn:
        torn.write(b'{"event":"mod')

    async def go_on() -> None:
        lease = await FileTurnStore(tmp_path / "turns").open(1)
        await lease.append(_reply("pending"))
        lease.drop()
        await lease.append(_reply("b"))
        await lease.release()

    asyncio.run(go_on())
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    assert [(line["seq"], line.get("reply")) for line in lines] == [(1, None), (2, "a"), (3, "b")]


def test_opening_a_journal_changes_nothing(tmp_path: Path) -> None:
    """It may be of a newer version, which only reading it shows."""
    _write(tmp_path, STARTED)
    with (tmp_path / JOURNAL).open("ab") as torn:
        torn.write(b'{"event":"mod')
    (tmp_path / f"abc{UNFINISHED}").write_bytes(b"half")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    Journal(tmp_path, create=False).close()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_journal_from_before_the_checksums_is_read(tmp_path: Path) -> None:
    _write(tmp_path, STARTED.model_copy(update={"version": 2}))
    path = tmp_path / JOURNAL
    old = re.sub(rb',"seq":1,"crc32":"[0-9a-f]{8}"', b"", path.read_bytes())
    path.write_bytes(old)
    (event,) = read(tmp_path)
    assert event == STARTED.model_copy(update={"version": 2})


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, STARTED.model_copy(update={"version": 99}))
    with pytest.raises(RetrievalError, match="version 99"):
        list(read(tmp_path))


def test_a_kind_of_event_that_is_not_known_is_no_damage(tmp_path: Path) -> None:
    _write(tmp_path, STARTED)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(sealed(b'{"event":"dreamt","at":"2031-01-01T00:00:00Z"}', 2) + b"\n")
    with pytest.raises(
        JournalVersionError, match=r"newer .*: there is no event 'dreamt' here"
    ) as raised:
        list(read(tmp_path))
    assert raised.value.hint == "update unified-flow"


def test_a_turn_that_a_newer_program_resumed_is_refused(tmp_path: Path) -> None:
    runner = Runner(user="u", host="h", pid=1)
    resumed = TurnResumed(
        version=99, phase="planner", runner=runner, by="u", via="cli", config_digest="c"
    )
    _write(tmp_path, STARTED, resumed)
    with pytest.raises(RetrievalError, match="version 99"):
        list(read(tmp_path))


def test_fields_of_a_newer_version_are_kept(tmp_path: Path) -> None:
    _write(tmp_path, STARTED.model_copy(update={"mood": "good"}))
    (event,) = read(tmp_path)
    assert event.model_extra == {"mood": "good"}


def take_many(root: Path, count: int) -> None:
    async def take() -> None:
        turns = FileTurnStore(root)
        for _ in range(count):
            print((await turns.create()).turn_id)

    asyncio.run(take())


def test_no_two_processes_take_the_same_turn(tmp_path: Path) -> None:
    code = "from tests.unit.test_journal import Path, take_many; take_many(Path({!r}), 50)"
    words = [sys.executable, "-c", code.format(str(tmp_path))]
    writers = [forked.Process(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    taken = [line for writer in writers for line in writer.communicate(timeout=60)[0].split()]
    assert sorted(map(int, taken)) == list(range(1, 151))


def test_state_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        turns = FileTurnStore(tmp_path / "turns")
        ledger = asyncio.run(Ledger.create(turns, lambda _: STARTED))
        asyncio.run(ledger.__aexit__(None, None, None))
        folder = Path(turns.place(1))
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / JOURNAL).stat().st_mode) == 0o600
