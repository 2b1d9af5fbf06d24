"""Drain, doctor, notifications, settings."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from interventions import CorruptQueueError, InterventionQueue, QueueError
from interventions.doctor import examine
from interventions.home import lock_file, queue_file
from interventions.queue import queue_at
from interventions.recovery import recover
from interventions.settings import QueueSettings, RetentionSettings, settings_of


def test_drain_puts_back_the_oldest_critical_first_each_once(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=3)
    first = [queue.put(make()).intervention_id for _ in range(3)]
    for severity, message in (
        ("medium", "m"),
        ("high", "h"),
        ("critical", "c one"),
        ("critical", "c two"),
    ):
        assert not queue.put(make(severity=severity, error_message=message))
    nothing = recover(queue, lost=False)
    assert (nothing.put, nothing.left) == ({}, 4)
    for name in first[:2]:
        queue.resolve(name, "room")
    result = recover(queue, lost=False)
    assert (len(result.put), result.left) == (2, 2)
    messages = [entry["error_message"] for entry in queue.entries()][-2:]
    assert messages == ["c one", "c two"]
    assert recover(queue, lost=False).put == {}
    for entry in queue.entries():
        if entry["resolved_at"] is None:
            queue.resolve(entry["id"], "room")
    assert len(recover(queue, lost=False).put) == 2
    assert recover(queue, lost=False).left == 0
    everything = [*queue.entries(), *queue.store.archived_closed()]
    told = [entry["error_message"] for entry in everything]
    assert sorted(told.count(message) for message in ("m", "h", "c one", "c two")) == [1] * 4
    emergency = list((home / "logs" / "errors").glob("emergency_*"))
    assert sum(len(path.read_text().splitlines()) for path in emergency) == 4


def test_two_drains_at_once_put_nothing_twice(home: Path, make) -> None:
    import threading

    small = InterventionQueue(home, max_size=1)
    small.put(make())
    for _ in range(10):
        small.put(make())
    queues = [InterventionQueue(home) for _ in range(4)]
    threads = [
        threading.Thread(target=recover, args=(queue,), kwargs={"lost": False}) for queue in queues
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = queues[0].entries()
    assert len(entries) == 11
    assert all(entry["occurrences"] == 1 for entry in entries)


def test_doctor_rebuilds_a_damaged_queue_from_the_logs(home: Path, make) -> None:
    queue = InterventionQueue(home, max_per_session=2)
    names = [queue.put(make(session_id="one")).intervention_id for _ in range(2)]
    merged = queue.put(make(session_id="one")).intervention_id
    queue.resolve(names[0], "mended")
    queue.assign(names[1], "ada")
    before = {e["id"]: (e["occurrences"], e["resolution"], e.get("owner")) for e in queue.entries()}
    queue_file(home).write_text("{ damaged")
    assert queue.put(make(error_message="while damaged")).reason == "corrupt"

    looked = examine(queue, mend=False)
    assert any("CORRUPT" in finding.what and not finding.mended for finding in looked)
    with pytest.raises(CorruptQueueError, match="CORRUPT"):
        queue.entries()
    mended = examine(queue, mend=True)
    assert any("restored 2 entries" in finding.what and finding.mended for finding in mended)
    after = {e["id"]: (e["occurrences"], e["resolution"], e.get("owner")) for e in queue.entries()}
    assert after == before
    assert len(queue.find(merged)["merged"]) == 1
    assert not any(finding.mended for finding in examine(queue, mend=True))
    assert len(recover(queue, lost=False).put) == 1


def test_doctor_that_only_looks_changes_nothing(home: Path, make) -> None:
    def everything() -> dict[str, bytes | None]:
        return {
            str(path): path.read_bytes() if path.is_file() else None
            for path in home.rglob("*")
            if not path.name.startswith("intervention_history.sqlite")  # derived
        }

    empty = everything()
    examine(InterventionQueue(home), mend=False)
    assert everything() == empty
    InterventionQueue(home).put(make())
    queue_file(home).write_text("{ damaged")
    (home / "shared_state" / ".intervention_queue.99999.tmp").write_text("half")
    before = everything()
    findings = examine(InterventionQueue(home), mend=False)
    assert everything() == before
    assert any("does not parse" in finding.what for finding in findings)
    findings = examine(InterventionQueue(home), mend=True)
    assert not list((home / "shared_state").glob(".*.tmp"))
    assert any("restored 1" in finding.what and finding.mended for finding in findings)


def test_what_comes_after_the_damage_waits_until_the_queue_is_rebuilt(home: Path, make) -> None:
    queue = InterventionQueue(home)
    first = queue.put(make()).intervention_id
    path = queue_file(home)
    path.write_bytes(path.read_bytes()[:-30])
    assert [queue.put(make()).reason for _ in range(2)] == ["corrupt"] * 2
    examine(queue, mend=True)
    assert [entry["id"] for entry in queue.entries()] == [first]
    assert len(recover(queue, lost=False).put) == 2


def test_doctor_tightens_permissions_and_sweeps(home: Path, make) -> None:
    queue = InterventionQueue(home)
    queue.put(make())
    queue_file(home).chmod(0o644)
    (home / "shared_state").chmod(0o755)
    left = home / "shared_state" / ".intervention_queue.99999.tmp"
    left.write_text("half")
    findings = [finding for finding in examine(queue, mend=True) if finding.mended]
    assert len(findings) == 2
    assert not left.exists()
    assert queue_file(home).stat().st_mode & 0o777 == 0o600
    assert (home / "shared_state").stat().st_mode & 0o777 == 0o700


def test_doctor_names_who_holds_the_lock(home: Path, make) -> None:
    import subprocess

    queue = InterventionQueue(home, lock_timeout_s=0.2)
    queue.put(make())
    code = (
        "import sys; from filelock import FileLock\n"
        "with FileLock(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(lock_file(home))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        (finding,) = [f for f in examine(queue, mend=True) if not f.fine]
        holder.communicate()
    assert f"process {holder.pid}" in finding.what


def wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def wait_for(path: Path, lines: int = 1) -> list[dict[str, Any]]:
    wait_for_file(path)
    while (written := path.read_text()).count("\n") < lines:
        time.sleep(0.02)
    return [json.loads(line) for line in written.splitlines()]


@pytest.fixture
def told(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the notification command writes what it is told."""
    out = home / "told.jsonl"
    script = home / "tell.py"
    script.write_text(f"import sys\nopen({str(out)!r}, 'a').write(sys.stdin.read())\n")
    command = f"{sys.executable} {script}"
    monkeypatch.setenv("UNIFIED_FLOW_NOTIFICATIONS__COMMAND", command)
    return out


def test_news_goes_to_the_command_once_per_fingerprint(home: Path, make, told: Path) -> None:
    queue = InterventionQueue(home, max_per_session=3)
    failure = {"error_type": "E", "error_message": "again", "session_id": "s"}
    queue.put(make(severity="high"))
    first = queue.put(make(severity="critical", **failure)).intervention_id
    queue.put(make(severity="critical", **failure))
    (message,) = wait_for(told)
    assert (message["event"], message["id"]) == ("new_critical", first)
    queue.put(make(**failure))
    for _ in range(9):
        queue.put(make(**failure))
    assert wait_for(told, 2)[1]["event"] == "occurrence_10"
    for entry in queue.entries():
        queue.resolve(entry["id"], "it is mended")
    queue.put(make(**failure))
    queue.put(make(**failure))
    last = wait_for(told, 3)[2]
    assert (last["event"], last["regression_note"]) == ("regression", "it is mended")
    assert len(wait_for(told, 3)) == 3


MESSAGE = {
    "event": "new_critical",
    "id": "int_x",
    "short_id": "x",
    "phase": "p",
    "error_type": "E",
    "error_message": "m",
    "occurrences": 1,
    "regression_of": None,
    "regression_note": None,
}


def test_a_notification_that_hangs_or_fails_never_touches_the_put(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = home / "logs" / "notifications.log"
    monkeypatch.setenv("UNIFIED_FLOW_NOTIFICATIONS__TIMEOUT_S", "0.2")
    for command, word in (
        ("sleep 60", "longer than 0.2 s"),
        ("false", "exited with 1"),
        ("/no/such/command", "No such file"),
        ("'unbalanced", "cannot be started"),
        ("   ", "cannot be started"),
    ):
        monkeypatch.setenv("UNIFIED_FLOW_NOTIFICATIONS__COMMAND", command)
        assert InterventionQueue(home).put(make(severity="critical")).kind == "accepted"
        assert word in wait_for(log)[0]["trouble"]
        log.unlink()


def test_a_put_does_not_wait_for_its_notification(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = home / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.01; done; touch {home}/done"
    monkeypatch.setenv("UNIFIED_FLOW_NOTIFICATIONS__TIMEOUT_S", "60")
    monkeypatch.setenv("UNIFIED_FLOW_NOTIFICATIONS__COMMAND", f"sh -c '{script}'")
    assert InterventionQueue(home).put(make(severity="critical")).kind == "accepted"
    assert not (home / "done").exists()
    go.touch()
    wait_for_file(home / "done")


def test_a_command_that_takes_too_long_ends_with_all_it_started(tmp_path: Path) -> None:
    from interventions.admission.notifications import deliver

    pid_file = tmp_path / "pid"
    task = {"command": f"sh -c 'sleep 600 & echo $! > {pid_file}; wait'", "url": "x://y"}
    said = deliver({**task, "message": MESSAGE, "timeout_s": 0.5})
    assert "longer than 0.5 s" in said[0]
    assert len(said) == 2, "the other channel is tried all the same"
    status = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):  # once it has ended
        while status.read_text().split()[2] != "Z":
            time.sleep(0.01)


def test_apprise_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading
    from types import SimpleNamespace

    from interventions.admission import notifications

    never, told = threading.Event(), []

    def notify(title: str, body: str) -> bool:
        told.append((title, body))
        return never.wait(20)

    fake = SimpleNamespace(Apprise=lambda urls: SimpleNamespace(notify=notify))
    monkeypatch.setattr(notifications, "import_module", lambda name: fake)
    task = {"command": "", "url": "x://y", "message": MESSAGE, "timeout_s": 0.1}
    assert notifications.deliver(task) == ["apprise took longer than 0.1 s"]
    never.set()
    assert notifications.deliver(task) == []
    assert told[0][0] == "new critical: p E"


def test_a_setting_that_is_wrong_names_the_place(home: Path) -> None:
    file = home / "unified_flow.toml"
    for text, word in (
        ("[queue]\nmax_size = 'many'", "max_size"),
        ("[queue]\nmax_sise = 3", "max_sise"),
        ("[queue]\nmax_size = 0", "max_size"),
        ("[queue]\nmax_size = true", "max_size"),
        ("[queue]\nmax_size = 2.5", "max_size"),
        ("[queue]\nlock_timeout_s = inf", "lock_timeout_s"),
        ("[queue]\nrefuse_when_full = 3", "refuse_when_full"),
        ("[queue", "unified_flow.toml"),
        ("queue = 3", "not a table"),
    ):
        file.write_text(text)
        with pytest.raises(QueueError, match=word):
            settings_of(home, QueueSettings)


def test_settings_of_the_file_and_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "unified_flow.toml").write_text("[queue]\nmax_size = 7\nmax_per_session = 2\n")
    monkeypatch.setenv("UNIFIED_FLOW_QUEUE__MAX_SIZE", "9")
    limits = queue_at(home).limits
    assert (limits.max_size, limits.max_per_session, limits.max_per_error_type) == (9, 2, 10)
    monkeypatch.delenv("UNIFIED_FLOW_QUEUE__MAX_SIZE")
    (home / "unified_flow.toml").write_text("[retention]\narchive_entries = 7\n")
    monkeypatch.setenv("UNIFIED_FLOW_RETENTION__ARCHIVE_ENTRIES", "0")
    assert settings_of(home, RetentionSettings).archive_entries == 0
    (home / "unified_flow.toml").unlink()
    (home / "pyproject.toml").write_text("[tool.unified_flow.queue]\nmax_size = 11\n")
    assert queue_at(home).limits.max_size == 11


def test_doctor_on_an_untouched_home_finds_nothing_wrong(home: Path) -> None:
    assert all(finding.fine for finding in examine(InterventionQueue(home), mend=True))


def test_a_plain_filelock_user_does_not_disturb_doctor(home: Path, make) -> None:
    queue = InterventionQueue(home)
    queue.put(make())
    with FileLock(lock_file(home)):
        pass
    assert all(finding.fine for finding in examine(queue, mend=True))
