"""No list is empty, and no health is healthy, after a loss."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from interventions import CorruptQueueError, InterventionQueue, StorageError
from interventions.cli import app
from interventions.doctor import examine
from interventions.home import (
    archive_file,
    queue_file,
    state_folder,
    transitions_file,
)
from interventions.recovery import recover
from interventions.storage import file_store, jsonl
from interventions.storage.file_store import FileStore
from monitor.core.source import LiveSource, TroubleKind
from tests.error_log import error_lines

EMPTY = '{"version": 1, "interventions": [], "dropped": {}}'


def without_first(path: Path) -> None:
    document = json.loads(path.read_text())
    del document["interventions"][0]
    path.write_text(json.dumps(document))


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "deleted": ("GONE", lambda path: path.unlink()),
    "emptied": ("GONE", lambda path: path.write_text(EMPTY)),
    "without one": ("GONE", without_first),
    "truncated": ("CORRUPT", lambda path: path.write_bytes(path.read_bytes()[:-40])),
    "nothing in it": ("CORRUPT", lambda path: path.write_bytes(b"")),
    "noise": ("CORRUPT", lambda path: path.write_bytes(b"\x00\xff{")),
    "moved aside": (
        "CORRUPT",
        lambda path: path.rename(path.with_name("intervention_queue.corrupt-1.json")),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_question_tells_of_a_loss_until_it_is_mended(
    damage: str, home: Path, queue: InterventionQueue, make
) -> None:
    word, do = DAMAGES[damage]
    names = [queue.put(make()).intervention_id for _ in range(4)]
    queue.assign(names[1], "ada")
    queue.resolve(names[2], "restarted it")
    queue.undo(names[2])
    queue.resolve(names[3], "restarted it")
    source = LiveSource(queue)
    assert source.read().trouble is None
    before = {entry["id"]: entry for entry in queue.entries()}
    do(queue_file(home))

    for words in (["list"], ["list", "--json"], ["health"], ["health", "--json"]):
        said = CliRunner().invoke(app, [*words, "--home", str(home)])
        assert (said.exit_code, said.stdout) == (4, ""), words
        assert word in said.stderr
        assert "interventions doctor" in said.stderr
    checked = CliRunner().invoke(app, ["doctor", "--check", "--home", str(home)])
    assert checked.exit_code == 4
    assert word in checked.stdout
    trouble = source.read().trouble
    assert trouble is not None
    assert trouble.kind is TroubleKind.CORRUPT
    again = InterventionQueue(home)
    with pytest.raises(CorruptQueueError, match=word):
        again.is_full()
    if damage != "without one":
        assert again.put(make()).kind == "dropped"
        with pytest.raises(CorruptQueueError, match=r"CORRUPT|GONE"):
            again.resolve(names[0], "x")

    rebuilt = CliRunner().invoke(app, ["doctor", "--rebuild", "--home", str(home)])
    assert rebuilt.exit_code == 0, rebuilt.output
    assert {entry["id"]: entry for entry in InterventionQueue(home).entries()} == before
    assert source.read().trouble is None
    assert len(recover(queue, lost=False).put) == (damage != "without one")


@contextmanager
def killed_before_the_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the writers in it were killed between the queue file and the error log."""
    with monkeypatch.context() as killed:
        killed.setattr(file_store, "log_failures", lambda *_, **__: False)
        yield


def error_log_of(home: Path) -> list[str]:
    return [line["intervention_id"] for line in error_lines(home)]


def test_the_next_holder_of_the_lock_logs_what_a_killed_writer_did_not(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_before_the_log(monkeypatch):
        name = InterventionQueue(home).put(make()).intervention_id
    assert error_log_of(home) == []
    queue = InterventionQueue(home)
    second = queue.put(make()).intervention_id
    InterventionQueue(home).put(make())
    assert error_log_of(home)[:2] == [name, second]
    assert len(error_log_of(home)) == 3
    before = queue.entries()
    queue_file(home).unlink()
    assert recover(queue, lost=True).restored == [entry["id"] for entry in before]
    assert queue.entries() == before


def test_an_occurrence_whose_writer_was_killed_is_not_lost_with_the_file(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = InterventionQueue(home, max_per_session=1)
    queue.put(make(session_id="s"))
    with killed_before_the_log(monkeypatch):
        InterventionQueue(home, max_per_session=1).put(make(session_id="s", severity="critical"))
    queue.assign("last", "ada")
    (before,) = queue.entries()
    queue_file(home).write_bytes(queue_file(home).read_bytes()[:50])
    examine(queue, mend=True)
    (after,) = queue.entries()
    assert (after["occurrences"], after["severity"], after["owner"]) == (2, "critical", "ada")
    assert after["merged"][0]["fingerprint"] == before["merged"][0]["fingerprint"]


def test_what_a_person_changed_is_rebuilt_though_its_writer_was_killed_before_it_logged_it(
    home: Path, queue: InterventionQueue, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_before_the_log(monkeypatch):
        name = InterventionQueue(home).put(make()).intervention_id
    before = queue.assign(name, "ada")
    queue_file(home).write_bytes(b"")
    recover(InterventionQueue(home), lost=True)
    assert InterventionQueue(home).entries() == (before,)


def test_where_nothing_was_ever_acknowledged_nothing_is_lost(home: Path, make) -> None:
    queue = InterventionQueue(home)
    assert queue.entries() == ()
    state_folder(home).mkdir(parents=True)
    queue_file(home).write_text(EMPTY)
    assert queue.entries() == ()
    assert queue.put(make()).kind == "accepted"


def test_what_nothing_knows_any_more_is_given_up_by_name(
    home: Path, queue: InterventionQueue, make
) -> None:
    name = queue.put(make()).intervention_id
    queue.assign(name, "ada")
    for log in (home / "logs" / "errors").iterdir():
        log.unlink()
    queue_file(home).unlink()
    with pytest.raises(CorruptQueueError, match="GONE"):
        queue.entries()
    mended = CliRunner().invoke(app, ["doctor", "--home", str(home)])
    assert mended.exit_code == 4
    assert str(name) in mended.stdout
    for _ in range(2):  # health is quiet from then on, and doctor still names it
        assert CliRunner().invoke(app, ["health", "--home", str(home)]).exit_code == 0
        again = CliRunner().invoke(app, ["doctor", "--home", str(home)])
        assert (again.exit_code, again.stdout.count(str(name))) == (0, 1)
    assert queue.entries() == ()
    assert queue.put(make()).kind == "accepted"


def test_what_was_reopened_from_the_archive_comes_back_open(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=1)
    first = queue.put(make()).intervention_id
    queue.resolve(first, "too early")
    second = queue.put(make()).intervention_id
    queue.resolve(second, "x")
    queue.reopen(first)
    before = queue.find(first)
    queue_file(home).unlink()
    examine(queue, mend=True)
    assert queue.find(first) == before
    assert queue.find(second)["resolution"] == "x"


def test_a_change_that_failed_or_was_killed_has_not_happened(
    home: Path, queue: InterventionQueue, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = queue.put(make()).intervention_id

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "_write", fails)
        with pytest.raises(StorageError, match="No space"):
            queue.resolve(name, "never written")
    assert not transitions_file(home).exists()
    queue_file(home).unlink()
    examine(queue, mend=True)
    assert queue.find(name)["resolved_at"] is None


def test_a_change_that_its_writer_could_not_note_any_more_is_noted_by_the_next(
    home: Path, queue: InterventionQueue, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it was killed between the queue file and the journal."""
    name = queue.put(make()).intervention_id
    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "_finish", lambda store, state, again=False: state)
        queue.resolve(name, "done")
        InterventionQueue(home).put(make())
        assert not transitions_file(home).exists()
    InterventionQueue(home).put(make())
    assert [line["action"] for line in jsonl.read(transitions_file(home))] == ["resolve"]
    assert queue.undo(name)[1]["resolved_at"] is None


def test_an_archive_line_whose_state_was_not_written_goes(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = InterventionQueue(home, max_size=1)
    queue.resolve(str(queue.put(make()).intervention_id), "x")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "_write", fails)
        assert queue.put(make()).reason == "storage"
    assert archive_file(home).read_bytes() == b""


def test_one_damaged_entry_is_set_aside_alone_and_named(
    home: Path, queue: InterventionQueue, make
) -> None:
    names = [queue.put(make()).intervention_id for _ in range(3)]
    document = json.loads(queue_file(home).read_text())
    document["interventions"][1]["turn_id"] = 2**70
    document["interventions"].insert(0, {"id": "by hand"})
    queue_file(home).write_text(json.dumps(document))
    said = CliRunner().invoke(app, ["list", "--json", "--home", str(home)])
    assert said.exit_code == 0
    assert {one["id"] for one in json.loads(said.stdout)["interventions"]} == {names[0], names[2]}
    assert "by hand" in said.stderr
    assert f"{names[1]}: turn_id" in said.stderr
    assert queue.put(make()).kind == "accepted"
    assert len(queue.entries()) == 3
    findings = examine(queue, mend=True)
    assert any("by hand" in finding.what and finding.mended for finding in findings)
    assert queue.find(str(names[1]))["turn_id"] == 2
    assert len(queue.entries()) == 4
    (aside,) = state_folder(home).glob("intervention_queue.unusable-*")
    assert [line["what"]["id"] for line in jsonl.read(aside)] == ["by hand", names[1]]


# Many users


def test_mode_and_link_of_the_queue_file_are_kept(
    home: Path, queue: InterventionQueue, make, tmp_path: Path
) -> None:
    queue.put(make())
    path, elsewhere = queue_file(home), tmp_path / "elsewhere.json"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    elsewhere.chmod(0o660)
    for writer in (queue, InterventionQueue(home)):
        writer.put(make())
    assert path.is_symlink()
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o660
    assert len(json.loads(elsewhere.read_text())["interventions"]) == 3
    assert all(finding.fine for finding in examine(queue, mend=False))


@pytest.mark.skipif(os.getuid() != 0, reason="only root writes for others")
def test_what_root_writes_stays_its_owners(home: Path, queue: InterventionQueue, make) -> None:
    queue.put(make())
    for path in (home, *home.rglob("*")):
        os.chown(path, 65534, 65534)
    again = InterventionQueue(home)
    again.assign("last", "ada")
    again.put(make())
    again.history()
    for path in home.rglob("*"):
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534), path


def test_in_a_folder_of_a_group_new_files_are_the_groups(home: Path, make) -> None:
    state_folder(home).mkdir(parents=True)
    state_folder(home).chmod(0o2770)
    queue = InterventionQueue(home)
    queue.resolve(str(queue.put(make()).intervention_id), "x")
    for path in state_folder(home).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o660, path


def test_a_planted_link_is_not_followed(home: Path, queue: InterventionQueue, make) -> None:
    queue.put(make())
    victim = home / "victim"
    victim.write_text("mine")
    for number in (os.getpid(), 1):
        (state_folder(home) / f".intervention_queue.{number}.tmp").symlink_to(victim)
    InterventionQueue(home).put(make())
    assert victim.read_text() == "mine"
    assert not list(state_folder(home).glob("*.tmp"))


def _logs_removed(home: Path) -> None:
    shutil.rmtree(home / "logs")


def _logs_replaced(home: Path) -> None:
    shutil.rmtree(home / "logs")
    (home / "logs").write_text("")


def _log_replaced(home: Path) -> None:
    log = next((home / "logs" / "errors").glob("*.jsonl"))
    log.unlink()
    log.mkdir()


@pytest.mark.parametrize("also", [_logs_removed, _logs_replaced, _log_replaced])
def test_a_loss_is_told_without_the_logs(
    also: Callable[[Path], None], home: Path, queue: InterventionQueue, make
) -> None:
    queue.put(make())
    assert len(queue.entries()) == 1
    also(home)
    queue_file(home).unlink()
    for words in (["list"], ["health", "--json"]):
        said = CliRunner().invoke(app, [*words, "--home", str(home)])
        assert (said.exit_code, said.stdout) == (4, ""), words


def test_a_pipe_in_the_place_of_the_file_is_refused(home: Path) -> None:
    state_folder(home).mkdir(parents=True)
    os.mkfifo(queue_file(home))
    for words in (["list"], ["health"], ["doctor"]):
        said = CliRunner().invoke(app, [*words, "--home", str(home)])
        assert (said.exit_code, "no regular file" in said.output) == (4, True), said.output


def test_a_link_to_itself_is_told(home: Path, queue: InterventionQueue, make) -> None:
    queue.put(make())
    queue_file(home).unlink()
    queue_file(home).symlink_to(queue_file(home))
    assert InterventionQueue(home).put(make()).reason == "storage"
    said = CliRunner().invoke(app, ["doctor", "--home", str(home)])
    assert said.exit_code == 4, said.output


def test_an_entry_whose_writer_was_killed_before_its_log_line_comes_back(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = InterventionQueue(home, max_per_session=1)
    with killed_before_the_log(monkeypatch):
        name = queue.put(make(session_id="s")).intervention_id
    for _ in range(2):
        assert queue.put(make(session_id="s", severity="critical")).intervention_id == name
    queue_file(home).unlink()
    with pytest.raises(CorruptQueueError, match="GONE"):
        queue.entries()
    assert recover(queue, lost=True).restored == [name]
    (entry,) = queue.entries()
    assert (entry["severity"], entry["occurrences"]) == ("critical", 3)


def test_an_id_of_the_archive_is_not_given_twice(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=1)
    queue.put(make(id="own"))
    queue.resolve("own", "restarted it")
    queue.resolve(queue.put(make()).intervention_id or "", "restarted it")
    again = queue.put(make(id="own")).intervention_id or ""
    assert again != "own"
    queue_file(home).unlink()
    assert again in recover(queue, lost=True).restored
    assert [entry["id"] for entry in queue.entries()] == [again]
