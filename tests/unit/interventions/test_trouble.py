"""The queue's own trouble: never in the way of the caller's error, never in silence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from interventions import (
    CorruptQueueError,
    InterventionQueue,
    NotFoundError,
    StorageError,
    intervene,
)
from interventions.doctor import examine
from interventions.home import lock_file, queue_file
from interventions.recovery import recover
from interventions.storage.file_store import FileStore
from tests import forked


def emergency(home: Path) -> list[dict[str, object]]:
    files = (home / "logs" / "errors").glob("emergency_*.jsonl")
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"interventions": 3}',
        '{"interventions": [{"no": "id"}]}',
        "\x00\xff",
        "null",
    ],
)
def test_a_file_that_does_not_parse_is_set_aside_and_never_overwritten(
    queue: InterventionQueue, make, home: Path, content: str
) -> None:
    path = queue_file(home)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="latin-1")
    with pytest.raises(CorruptQueueError, match=str(path)):
        queue.entries()
    assert path.exists()
    admission = queue.put(make())
    assert (admission.kind, admission.reason) == ("dropped", "corrupt")
    (aside,) = path.parent.glob("intervention_queue.corrupt-*.json")
    assert str(aside) in admission.detail
    assert aside.read_text(encoding="latin-1") == content
    assert len(emergency(home)) == 1
    # A new file would hide the loss.
    assert queue.put(make()).reason == "corrupt"
    with pytest.raises(CorruptQueueError, match="CORRUPT"):
        queue.entries()
    assert not path.exists()
    examine(queue, mend=True)
    assert len(recover(queue, lost=False).put) == 2
    assert queue.put(make()).kind == "accepted"


def test_a_truncated_file_is_set_aside(queue: InterventionQueue, make, home: Path) -> None:
    for _ in range(3):
        queue.put(make())
    path = queue_file(home)
    path.write_bytes(path.read_bytes()[:-40])
    assert queue.put(make()).reason == "corrupt"


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_reformatted_json_is_read_like_any_other(
    queue: InterventionQueue, make, home: Path, indent: int | None
) -> None:
    first = queue.put(make(error_message="ünï\u2028code")).intervention_id
    path = queue_file(home)
    document = json.loads(path.read_text())
    document["note to self"] = {"keep": "me"}
    path.write_text("\ufeff" + json.dumps(document, indent=indent), encoding="utf-8")
    second = queue.put(make()).intervention_id
    assert [entry["id"] for entry in queue.entries()] == [first, second]
    assert json.loads(path.read_text())["note to self"] == {"keep": "me"}


def test_a_line_edited_in_place_is_seen(queue: InterventionQueue, make, home: Path) -> None:
    name = queue.put(make(error_message="before")).intervention_id
    path = queue_file(home)
    path.write_text(path.read_text().replace("before", "beyond"))
    queue.put(make())
    assert queue.find(name)["error_message"] == "beyond"


def test_a_newer_file_keeps_its_version_and_unknown_fields(
    queue: InterventionQueue, make, home: Path
) -> None:
    queue.put(make())
    path = queue_file(home)
    document = json.loads(path.read_text())
    document["version"] = 7
    document["interventions"][0]["new"] = [1]
    path.write_text(json.dumps(document))
    queue.put(make())
    after = json.loads(path.read_text())
    assert (after["version"], after["interventions"][0]["new"]) == (7, [1])
    assert len(after["interventions"]) == 2


def test_the_documents_own_example_is_read(queue: InterventionQueue, make, home: Path) -> None:
    path = queue_file(home)
    path.parent.mkdir(parents=True)
    example = {
        "id": "int_20260104_103000_abc123",
        "type": "error",
        "severity": "critical",
        "phase": "coordinator",
        "tool": "internet.research",
        "error_type": "HTTPStatusError",
        "error_message": "403 Forbidden",
        "context": {"url": "https://x.com", "session_id": "session_abc", "turn_id": 1234},
        "created_at": "2026-01-04T10:30:00Z",
        "resolved_at": None,
        "resolution": None,
    }
    path.write_text(json.dumps({"interventions": [example]}))
    queue.put(make())
    entry = queue.find("abc")
    assert (entry["session_id"], entry["turn_id"]) == ("session_abc", 1234)
    queue.resolve("abc", "got a key")


def test_a_lock_held_by_plain_filelock_times_out_into_the_emergency_log(make, home: Path) -> None:
    queue = InterventionQueue(home, lock_timeout_s=0.1)
    lock_file(home).parent.mkdir(parents=True)
    with FileLock(lock_file(home)):
        admission = queue.put(make())
        assert (admission.kind, admission.reason) == ("dropped", "lock_timeout")
        with pytest.raises(StorageError, match=r"longer than 0\.1 s"):
            queue.resolve("x", "y")
    assert emergency(home)[0]["reason"] == "lock_timeout"
    assert queue.put(make()).kind == "accepted"
    assert queue.health()["dropped"] == {"lock_timeout": 1}


# Writes past so many bytes of any file fail, as on a full disk.
FULL_DISK = """
    import resource, signal, sys
    from interventions import InterventionQueue, InterventionRequest, StorageError, intervene
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def room(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def request(message):
        return InterventionRequest(
            type="error", severity="high", phase="p", error_type=message, error_message=message,
            session_id=message, turn_id=1,
        )
    queue = InterventionQueue(sys.argv[1])
"""


def on_a_full_disk(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK) + textwrap.dedent(code), str(home)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )


def test_a_full_disk_sends_the_failure_to_stderr_and_harms_nothing(home: Path) -> None:
    code = """
        names = [queue.put(request(f"e{n}")).intervention_id for n in range(3)]
        before = open(f"{sys.argv[1]}/shared_state/intervention_queue.json").read()
        room(500)
        admission = queue.put(request("while it was full"))
        try:
            queue.resolve(names[0], "x")
        except StorageError as error:
            print("refused:", error)
        after = open(f"{sys.argv[1]}/shared_state/intervention_queue.json").read()
        room(resource.RLIM_INFINITY)
        print(admission.kind, admission.reason, before == after)
        print(queue.put(request("later")).kind, len(queue.entries()))
    """
    answer = on_a_full_disk(code, home)
    refused, dropped, later = answer.stdout.splitlines()
    assert refused.startswith("refused: cannot write")
    assert "No space left" in refused
    assert (dropped, later) == ("dropped storage True", "accepted 4")
    line = json.loads(next(x for x in answer.stderr.splitlines() if x.startswith("{")))
    assert (line["error_message"], line["admission"]) == ("while it was full", "dropped")
    assert not list(home.rglob("*.tmp"))


def test_a_transition_that_could_not_be_written_is_in_nobodys_way(
    queue: InterventionQueue, make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    name = queue.put(make()).intervention_id

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fails(action: Callable[[], object]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(FileStore, "_write", full)
            with pytest.raises(StorageError, match="No space"):
                action()

    fails(lambda: queue.resolve(name, "never written"))
    assert queue.journal() == []
    queue.assign(name, "ada")
    fails(lambda: queue.undo())
    assert [line["action"] for line in queue.journal()] == ["assign"]
    assert queue.undo()[1]["owner"] is None
    with pytest.raises(NotFoundError, match="nothing to undo"):
        queue.undo()
    queue.assign(name, "bob")
    queue_file(home).write_text("damaged")
    queue.put(make())
    examine(queue, mend=True)
    entry = queue.find(name)
    assert (entry["owner"], entry["resolution"], entry["version"]) == ("bob", None, 4)


def test_the_callers_error_is_raised_even_when_nothing_can_be_written(home: Path) -> None:
    code = """
        room(0)
        try:
            with intervene(phase="p", session_id="s", home=sys.argv[1]):
                print(1 / 0)
        except ZeroDivisionError as error:
            sys.stderr.write(f"raised {error}, notes {getattr(error, '__notes__', None)}")
    """
    answer = on_a_full_disk(code, home)
    assert answer.stderr.endswith("raised division by zero, notes None")
    assert any(line.startswith("{") for line in answer.stderr.splitlines())


def test_the_callers_error_is_raised_even_from_a_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ZeroDivisionError), intervene(phase="p", session_id="s"):
        print(1 / 0)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["error_type"] == "ZeroDivisionError"
    monkeypatch.chdir(tmp_path)


def as_nobody(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run as a user who may do nothing special; root may write to what nobody may write to.

    What is forked has everything imported: that user may not even read the interpreter.
    """
    drop = """
        import os, pathlib
        from interventions.admission import capture
        capture.environment(pathlib.Path("/"))
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
    """
    return forked.run(
        [sys.executable, "-c", textwrap.dedent(drop) + textwrap.dedent(code), str(home)],
        capture_output=True,
        text=True,
        cwd="/",
        timeout=30,
    )


PUT = """
    import sys, json
    from interventions import intervene, InterventionQueue
    try:
        with intervene(phase="planner", session_id="s", home=sys.argv[1]):
            raise ValueError("the caller's own error")
    except ValueError as error:
        print("raised", error)
"""


def test_a_read_only_home_leaves_the_callers_error_and_one_json_line(home: Path) -> None:
    # pytest's own temporary folders are private to root, so the home lies beside them.
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o555)
        answer = as_nobody(PUT, Path(place))
        assert answer.stdout == "raised the caller's own error\n"
        lines = [line for line in answer.stderr.splitlines() if line.startswith("{")]
        assert json.loads(lines[0])["error_message"] == "the caller's own error"
        assert json.loads(lines[0])["reason"] == "storage"
        assert list(Path(place).iterdir()) == []


def test_only_the_queue_folder_is_read_only_and_the_emergency_log_takes_it() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        (Path(place) / "shared_state").mkdir(mode=0o555)
        answer = as_nobody(PUT, Path(place))
        assert "raised the caller's own error" in answer.stdout
        (line,) = emergency(Path(place))
        assert line["reason"] == "storage"


def test_an_error_log_that_cannot_be_written_is_an_emergency(
    queue: InterventionQueue, make, home: Path
) -> None:
    from datetime import UTC, datetime

    (home / "logs" / "errors" / f"{datetime.now(UTC).date()}.jsonl").mkdir(parents=True)
    assert queue.put(make()).kind == "accepted"
    (line,) = emergency(home)
    assert line["admission"] == "accepted"
    assert "error log cannot be written" in str(line["detail"])
    assert queue.health()["dropped"] == {}
    assert recover(queue, lost=False).put == {}


def test_a_rebuild_knows_what_only_the_emergency_log_took_and_counts_on(make, home: Path) -> None:
    from datetime import UTC, datetime

    queue = InterventionQueue(home, max_size=3, max_per_session=1)
    folder = home / "logs" / "errors" / f"{datetime.now(UTC).date()}.jsonl"
    folder.mkdir(parents=True)
    queue.put(make(session_id="one"))
    folder.rmdir()
    for _ in range(2):
        queue.put(make(session_id="one"))
    for _ in range(3):
        queue.put(make())
    before, figures = queue.entries(), queue.health()
    assert (figures["accepted"], figures["merged"]) == (3, 2)
    assert figures["dropped"] == {"queue_full": 1}
    queue_file(home).write_text("{")
    queue.put(make())
    examine(queue, mend=True)
    assert [(e["id"], e["occurrences"]) for e in queue.entries()] == [
        (e["id"], e["occurrences"]) for e in before
    ]
    after = queue.health()
    assert (after["accepted"], after["merged"]) == (3, 2)
    assert after["dropped"] == {"queue_full": 1, "corrupt": 1}


def test_logs_that_cannot_be_read_are_the_queues_own_trouble(
    queue: InterventionQueue, make, home: Path
) -> None:
    queue.put(make())
    for name in ("emergency_2026-01-01.jsonl", "2026-01-01.jsonl"):
        (home / "logs" / "errors" / name).mkdir()
    with pytest.raises(StorageError, match="cannot read"):
        queue.health()
    with pytest.raises(StorageError, match="cannot read"):
        recover(queue, lost=False)
    assert any("cannot read" in finding.what for finding in examine(queue, mend=False))
    assert any("cannot read" in finding.what for finding in examine(queue, mend=True))
    shutil.rmtree(home / "logs" / "errors")
    (home / "logs" / "errors").write_text("")
    with pytest.raises(StorageError, match="cannot read"):
        queue.health()


EXAMINE = """
    import sys
    from interventions.doctor import examine
    from interventions import InterventionQueue
    queue = InterventionQueue(sys.argv[1])
    for finding in examine(queue, mend=False):
        print(finding.fine, finding.what, finding.todo)
"""


@pytest.mark.parametrize("closed", ["logs", "logs/errors/*.jsonl", "shared_state/*.jsonl"])
def test_what_the_doctor_may_not_read_is_a_finding(make, closed: str) -> None:
    """A folder of logs that nobody may enter ended it with a traceback, and a log or a journal that
    nobody may read was no finding while the index knew what is in it."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        queue = InterventionQueue(place)
        queue.resolve(queue.put(make()).intervention_id or "", "mended")
        assert queue.health()["unresolved"] == 0
        for path in (Path(place), *Path(place).rglob("*")):
            if os.getuid() == 0:
                os.chown(path, 65534, 65534)
        (shut,) = Path(place).glob(closed)
        shut.chmod(0)
        answer = as_nobody(EXAMINE, Path(place))
        assert "Traceback" not in answer.stderr
        (wrong,) = [line for line in answer.stdout.splitlines() if str(shut) in line]
        assert wrong.startswith("False")
        assert "cannot be read" in wrong or "cannot read" in wrong
        shut.chmod(0o700)


def test_a_torn_line_costs_one_line(queue: InterventionQueue, make, home: Path) -> None:
    from tests.error_log import error_lines

    queue.put(make(error_message="one"))
    (log,) = (home / "logs" / "errors").glob("2*.jsonl")
    with log.open("a") as file:
        file.write('{"half": "a li')
    queue.put(make(error_message="two"))
    assert [line["error_message"] for line in error_lines(home)] == ["one", "two"]


def test_a_clock_that_jumps_back_mixes_nothing_up(queue: InterventionQueue, make) -> None:
    from freezegun import freeze_time

    with freeze_time("2026-05-02T12:00:00Z"):
        for _ in range(5):
            queue.put(make(session_id="one"))
    with freeze_time("2026-05-01T12:00:00Z"):
        admission = queue.put(make(session_id="one"))
        newest = queue.entries()[-1]
        assert (admission.kind, admission.intervention_id) == ("merged", newest["id"])
        queue.resolve(newest["id"], "x")
        assert queue.health()["oldest_unresolved_age_hours"] == 0
        assert queue.health()["median_hours_to_resolve"] == 0
        assert queue.find(newest["id"])["last_seen"] == "2026-05-02T12:00:00Z"


def test_a_put_inside_a_put_times_out_instead_of_hanging(make, home: Path) -> None:
    queue = InterventionQueue(home, lock_timeout_s=0.1)
    with queue.store.transaction(1):
        assert queue.put(make()).reason == "lock_timeout"


def test_the_note_on_the_exception_names_the_entry(queue: InterventionQueue) -> None:
    with pytest.raises(KeyError) as caught, intervene(phase="p", session_id="s", queue=queue):
        raise KeyError("x")
    (entry,) = queue.entries()
    assert caught.value.__notes__ == [f"intervention {entry['id']}"]
    assert (entry["turn_id"], entry["session_id"]) == (0, "s")


def test_an_interrupt_is_no_failure(queue: InterventionQueue) -> None:
    with pytest.raises(KeyboardInterrupt), intervene(phase="p", session_id="s", queue=queue):
        raise KeyboardInterrupt
    assert queue.entries() == ()


def test_trouble_inside_intervene_is_written_where_the_queue_is(
    home: Path, make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    queue = InterventionQueue(home)
    odd: Any = 123
    with pytest.raises(KeyError), intervene(phase="p", session_id=odd, queue=queue):
        raise KeyError("x")
    monkeypatch.setenv("UNIFIED_FLOW_HOME", str(home))
    with pytest.raises(OSError, match="y"), intervene(phase="p", session_id=odd):
        raise OSError("y")
    assert [entry["error_type"] for entry in queue.entries()] == ["KeyError", "OSError"]
    assert queue.entries()[0]["session_id"] == "123"
    assert "valid string" in queue.entries()[0]["context"]["refused"]["session_id"]
    (home / "unified_flow.toml").write_text("[queue]\nmax_size = 'many'")
    with pytest.raises(ValueError, match="z"), intervene(phase="p", session_id="s"):
        raise ValueError("z")
    assert queue.entries()[-1]["error_type"] == "ValueError"
    assert list(elsewhere.iterdir()) == []


def test_foreign_code_that_ends_the_program_does_not_end_the_put(
    queue: InterventionQueue, make
) -> None:
    class Ends:
        def __repr__(self) -> str:
            raise SystemExit(3)

    class EndsError(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    assert queue.put(make(context={"b": Ends()})).kind == "accepted"
    with (
        pytest.raises(KeyError),
        intervene(phase="p", session_id="s", context={"b": Ends()}, queue=queue),
    ):
        raise KeyError("x")
    with pytest.raises(EndsError), intervene(phase="p", session_id="t", queue=queue):
        raise EndsError
    assert len(queue.entries()) == 3
