"""Turns given up, turns removed, interventions that nobody needs, and fixes that are known."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue, InterventionRequest
from interventions.entry import short_id, turns_needed
from interventions.errors import StorageError
from interventions.home import lock_file
from interventions.recovery import recover
from interventions.storage.lock import FairLock
from tests import forked, in_process
from tests.answers import QUESTION, Turns, open_entries, script, scripted_flow
from tests.servers.model_server import ModelServer, status
from unified_flow.cli import turn_screen
from unified_flow.engine.ephemeral_turns import EphemeralTurns
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.resume import housekeeping, retention
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.stores import turn_store
from unified_flow.turns.events import PhaseCompleted, TurnResumed, this_process
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.turn import Turn

DOWN = RuntimeError("down")
REST = {"sessions": [], "logs": []}  # what `turns prune` says beside the turns
REFUSE = """CREATE TRIGGER refuse BEFORE INSERT ON turns
    BEGIN SELECT RAISE(ABORT, 'no room for it'); END"""


def ask(home: Path, docs: Path, **over: Any) -> None:
    with suppress(PhaseError):
        asyncio.run(scripted_flow(home, docs, **over).process("s", QUESTION))


def cli(
    home: Path, *words: str | Path, code: int = 0, columns: int = 100
) -> subprocess.CompletedProcess[str]:
    done = in_process.run(*words, home=home, COLUMNS=str(columns))
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def test_an_abandoned_turn_says_so_everywhere_and_is_closed_in_bulk(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    cli(home, "unified_flow", "turns", "abandon", "1", "-m", "asked again")
    listed = cli(home, "interventions", "list").stdout
    assert "SUPERSEDED" in listed
    assert "turn 1 was abandoned by" in listed
    assert "abandoned" in cli(home, "unified_flow", "turns", "list").stdout
    cli(home, "unified_flow", "turns", "abandon", "1", code=2)
    cli(home, "unified_flow", "turns", "abandon", "9", code=3)
    refused = cli(home, "unified_flow", "resume", "1", "--model", "embedded", code=2)
    assert "--from synthesis" in refused.stderr
    cli(home, "interventions", "dismiss", "--query", "is:superseded", "--yes")
    assert open_entries(home)[0]["dismissed_at"]


def test_lists_take_status_phase_time_session_error_model_and_text(home: Path, docs: Path) -> None:
    ask(home, docs)
    ask(home, docs, synthesis=DOWN)
    asyncio.run(scripted_flow(home, docs).process("other", "What is a node?"))

    def listed(*words: str) -> list[int]:
        done = cli(home, "unified_flow", "turns", "list", *words, "--json")
        return [row["turn_id"] for row in json.loads(done.stdout)["turns"]]

    assert listed() == [3, 2, 1]
    assert listed("--limit", "1") == [3]
    assert listed("--status", "failed") == listed("--phase", "synthesis") == [2]
    assert listed("--error", "runtimeERROR: down") == listed("--error", "unknown_error") == [2]
    assert listed("--session", "s") == listed("--session", "s", "--since", "1h") == [2, 1]
    assert listed("--text", "a NODE") == listed("--session", "last") == [3]
    assert listed("--model", "scripted") == [3, 2, 1]
    assert listed("--model", "no such") == listed("--before", "1h") == []
    assert listed("--since", "2020-01-01T00:00:00Z", "--status", "answered") == [3, 1]
    assert listed("--since", "2020-01-01", "--before", "2999-12-31") == [3, 2, 1]
    assert listed("--before", "2020-01-01") == []
    refused = cli(home, "unified_flow", "turns", "list", "--since", "yesterday", code=2)
    assert "'yesterday' is no time" in refused.stderr
    refused = cli(home, "unified_flow", "turns", "list", "--phase", "synthesise", code=2)
    assert "there is no phase 'synthesise'" in refused.stderr
    assert listed("--since", "999999d") == [3, 2, 1]
    pruned = cli(home, "unified_flow", "turns", "prune", "--older-than", "999999d")
    assert pruned.stdout == "deleted 0: none\n"


def test_many_turns_are_given_up_by_one_command(home: Path, docs: Path) -> None:
    for session in ("a", "b", "b"):
        with suppress(PhaseError):
            asyncio.run(scripted_flow(home, docs, synthesis=DOWN).process(session, QUESTION))
    ask(home, docs)
    which = ("unified_flow", "turns", "abandon", "--error", "down")
    refused = cli(home, *which, code=2)
    assert "abandon 3 turns (1, 2, 3): without a terminal this needs --yes" in refused.stderr
    cli(home, "unified_flow", "turns", "abandon", code=2)
    cli(home, "unified_flow", "turns", "abandon", "1", "--status", "failed", code=2)
    refused = cli(home, "unified_flow", "turns", "abandon", "--text", "", "--yes", code=2)
    assert "--text is empty" in refused.stderr
    done = cli(home, *which, "--session", "a", "--yes")
    assert "abandoned 1 turn" in done.stdout
    left = [entry for entry in open_entries(home) if not entry.get("superseded")]
    done = cli(home, *which, "--yes", "--json", "--note", "too late")
    assert json.loads(done.stdout) == {"abandoned": 2, "superseded": len(left), "refused": []}
    assert all("too late" in InterventionQueue(home).find(e["id"])["superseded"] for e in left)
    assert [turn.status for turn in Turns(home).latest()[0]] == ["answered", *["abandoned"] * 3]
    assert json.loads(cli(home, *which, "--yes", "--json").stdout)["abandoned"] == 0


def test_who_stops_while_many_are_given_up_leaves_no_intervention_unmarked(
    home: Path, docs: Path
) -> None:
    ask(home, docs, synthesis=DOWN)
    ask(home, docs, planner=ValueError("another one"))

    async def stopped_after_one() -> None:
        def stop(done: int, total: int) -> None:
            task.cancel()

        turns, queue = turn_store(home), InterventionQueue(home)
        task = asyncio.ensure_future(housekeeping.abandon(turns, queue, [1, 2], "", stop))
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(stopped_after_one())
    given_up = {t.turn_id for t in Turns(home).latest()[0] if t.status == "abandoned"}
    assert 1 in given_up
    marked = {entry["turn_id"] for entry in open_entries(home) if entry.get("superseded")}
    assert marked == given_up


def test_what_a_locked_queue_leaves_unmarked_is_marked_the_next_time(
    home: Path, docs: Path
) -> None:
    ask(home, docs, synthesis=DOWN)
    turns, impatient = turn_store(home), InterventionQueue(home, lock_timeout_s=0.05)
    with FairLock(lock_file(home)).hold(5), pytest.raises(StorageError):
        asyncio.run(housekeeping.abandon(turns, impatient, [1], ""))
    (entry,) = open_entries(home)
    assert (Turns(home).require(1).status, entry.get("superseded")) == ("abandoned", None)
    again = ("unified_flow", "turns", "abandon", "--status", "failed", "--yes", "--json")
    found = json.loads(cli(home, *again).stdout)
    assert found == {"abandoned": 0, "superseded": 1, "refused": []}
    assert "turn 1 was abandoned" in open_entries(home)[0]["superseded"]
    assert json.loads(cli(home, *again).stdout)["superseded"] == 0


def test_prune_takes_a_failed_turn_whose_failure_is_closed(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)  # 1
    ask(home, docs, reflection=DOWN)  # 2
    ask(home, docs)  # 3: the newest
    archive = Turns(home)
    for turn_id in (1, 2):
        os.utime(archive.journal(turn_id), (1, 1))
    prune = ("unified_flow", "turns", "prune", "--json")
    assert json.loads(cli(home, *prune).stdout) == REST | {"turns": [], "removed": 0}
    for entry in open_entries(home):
        if entry["turn_id"] == 1:
            cli(home, "interventions", "resolve", entry["id"], "-m", "mended by hand")
    (home / "unified_flow.toml").write_text("[retention]\nturns_days = 0\n")
    assert "turns_days: Input should be greater than 0, not 0" in cli(home, *prune, code=2).stderr
    forever = "turns_days = 9e8\nlogs_days = 9e8\nsessions_days = 9e8\narchive_days = 9e8\n"
    (home / "unified_flow.toml").write_text(f"[retention]\n{forever}")
    cli(home, "interventions", "doctor")
    assert json.loads(cli(home, *prune).stdout) == REST | {"turns": [], "removed": 0}
    (home / "unified_flow.toml").write_text("[retention]\nturns_days = 30\n")
    assert json.loads(cli(home, *prune).stdout) == REST | {"turns": [1], "removed": 1}


def test_prune_takes_what_retention_does_not_keep(home: Path, docs: Path) -> None:
    for _ in range(3):
        ask(home, docs)
    ask(home, docs, synthesis=DOWN)
    logs = home / "logs"
    for name in ("errors/2020-01-01", "rag_queries-2020-01-01", "errors/emergency_2020-01-01"):
        (logs / f"{name}.jsonl").write_text("{}\n")
    settings = home / "unified_flow.toml"
    settings.write_text("[retention]\nlogs_days = 30\nsessions_days = 1e-9\nturns_mb = 1e-6\n")
    prune = ("unified_flow", "turns", "prune", "--json")
    would = json.loads(cli(home, *prune, "--dry-run").stdout)
    assert json.loads(cli(home, *prune).stdout) == would | {"removed": 3}
    assert would["turns"] == [1, 2, 3]  # the failed one is needed
    assert would["sessions"] == ["s"]
    gone = ["2020-01-01", "emergency_2020-01-01", "rag_queries-2020-01-01"]  # no failure waits
    assert would["logs"] == [f"{name}.jsonl" for name in gone]
    assert [turn.turn_id for turn in Turns(home).latest()[0]] == [4]
    request = Turns(home).latest()[0][0].request_id
    assert "failed" in cli(home, "unified_flow", "trace", request).stdout


def test_a_turn_is_shown_on_a_screen(home: Path, docs: Path) -> None:
    """At any width, with each passage once, and its phases over time."""
    ask(home, docs, synthesis=RuntimeError("down " * 200))
    asyncio.run(resume_turn(scripted_flow(home, docs), 1, ResumeRequest()))
    for columns in (80, 120):
        for words in ([], ["--timeline"]):
            done = cli(home, "unified_flow", "turns", "show", "last", *words, columns=columns)
            lines = done.stdout.splitlines()
            assert len(lines) <= 30
            assert max(map(len, lines)) <= columns
            assert any(line.startswith("Resumed at synthesis") for line in lines)
            assert "5 synthesis" in done.stdout
            assert "failed" in done.stdout
    shown = cli(home, "unified_flow", "turns", "show", "1")
    assert "A topic is a named bus." in shown.stdout
    assert "turns show 1 --full" in shown.stderr
    assert "- response: A topic" in cli(home, "unified_flow", "turns", "show", "1", "--full").stdout


def test_a_phase_of_another_version_has_its_line_on_the_screen() -> None:
    unknown = PhaseCompleted(phase="rewriter", visit=1, output={"text": "x"}, duration_ms=3.0)
    (line,) = turn_screen.screen(Turn(), [unknown], 80)
    assert line.startswith("- rewriter")


def test_last_is_the_newest_turn_also_if_it_is_damaged(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    ask(home, docs, synthesis=DOWN)
    Turns(home).journal(2).write_text("nothing of it is whole\n")
    cli(home, "unified_flow", "turns", "show", "last", code=1)
    listed = json.loads(cli(home, "unified_flow", "turns", "list", "--json").stdout)
    assert [row["turn_id"] for row in listed["turns"]] == [1]
    (left_out,) = listed["unreadable"]
    assert left_out["turn_id"] == 2
    assert "damaged" in left_out["why"]
    for name in ("2", "last"):
        cli(home, "unified_flow", "resume", name, code=2)
    assert "turn 2 is abandoned" in cli(home, "unified_flow", "turns", "abandon", "last").stdout
    assert [turn.status for turn in Turns(home).latest()[0]] == ["failed"]


def test_the_index_of_turns_is_made_anew_and_holds_nothing_that_is_gone(
    home: Path, docs: Path
) -> None:
    ask(home, docs, synthesis=DOWN)
    asyncio.run(scripted_flow(home, docs).process("s", "What is a node?"))
    index = home / "shared_state/turn_index.sqlite3"
    listed = ("unified_flow", "turns", "list", "--text", "NODE", "--jsonl")
    before = cli(home, *listed).stdout
    assert '"turn_id": 2' in before
    assert before.count("turn_id") == 1
    assert cli(home, *listed).stdout == before
    for damage in (b"", b"no index" * 1000):
        index.write_bytes(damage)
        assert cli(home, *listed).stdout == before
    with closing(sqlite3.connect(index)) as newer:
        newer.execute("PRAGMA user_version = 99")
    left = index.read_bytes()
    assert cli(home, *listed).stdout == before
    assert index.read_bytes() == left
    index.unlink()
    cli(home, *listed)
    shutil.rmtree(home / "shared_state/turns/turn_000002")
    assert cli(home, *listed).stdout == ""
    assert b"node" not in index.read_bytes()


def test_an_older_failure_of_a_turn_that_is_answered_is_superseded(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    back = scripted_flow(home, docs, reflection=RuntimeError("down too"))
    asyncio.run(resume_turn(back, 1, ResumeRequest(from_phase="reflection", note="n")))
    asyncio.run(resume_turn(scripted_flow(home, docs), 1, ResumeRequest(note="mended")))
    assert "answered, resumed" in cli(home, "unified_flow", "turns", "list").stdout
    old, new = open_entries(home)
    assert (old["phase"], old["resolved_at"]) == ("synthesis", None)
    assert "was resumed by" in old["superseded"]
    assert new["resolutions"][0]["verified"]


def test_prune_takes_only_what_is_finished_old_and_needed_by_nobody(home: Path, docs: Path) -> None:
    ask(home, docs)  # 1: answered
    ask(home, docs, synthesis=DOWN)  # 2: failed, its intervention is open
    ask(home, docs, reflection=DOWN)  # 3: abandoned, its intervention is dismissed
    ask(home, docs)  # 4: answered, but fresh
    ask(home, docs)  # 5: the newest
    cli(home, "unified_flow", "turns", "abandon", "3")
    cli(home, "interventions", "dismiss", "--query", "is:superseded", "--yes")
    archive = Turns(home)
    for turn_id in (1, 2, 3, 5):
        os.utime(archive.journal(turn_id), (1, 1))
    would = json.loads(cli(home, "unified_flow", "turns", "prune", "--dry-run", "--json").stdout)
    assert would == REST | {"turns": [1, 3], "removed": 0}
    cli(home, "unified_flow", "turns", "prune")
    assert archive.ids() == [2, 4, 5]
    assert sorted(path.name[:5] for path in archive.root.iterdir()) == ["turn_"] * 3
    ask(home, docs)
    assert archive.ids()[-1] == 6


def test_a_folder_in_which_no_turn_was_begun_goes_too(home: Path, docs: Path) -> None:
    """A process may die between taking a number and writing the first line."""
    ask(home, docs)
    turns = Turns(home)
    empty, unwritten, fresh = (turns.path(turn_id) for turn_id in (2, 3, 4))
    for folder in (empty, unwritten, fresh):
        folder.mkdir()
    (unwritten / JOURNAL).touch()
    ask(home, docs)
    for old in (empty, unwritten):
        os.utime(old, (1, 1))
    cli(home, "unified_flow", "turns", "prune")
    assert turns.ids() == [1, 4, 5]
    assert fresh.is_dir()


AS_NOBODY = """
import os, sys
from unified_flow.cli.app import app

def prune(home, *words):
    try:
        app(["turns", "prune", "--older-than", "0s", "--home", home, *words])
    except SystemExit as exc:
        return exc.code

# The first one loads all modules, which may lie where only root can read.
assert prune(sys.argv[1], "--dry-run") == 0
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
sys.exit(prune(sys.argv[1]))
"""


def test_turns_that_cannot_be_removed_say_what_helps(home: Path, docs: Path) -> None:
    """As somebody who is not root, in a folder without the write bit."""
    ask(home, docs)
    ask(home, docs)
    turns = Turns(home).root
    if os.getuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, 65534, 65534)
    for folder in home.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    turns.chmod(0o555)
    done = forked.run(
        [sys.executable, "-c", AS_NOBODY, str(home)], capture_output=True, text=True, check=False
    )
    turns.chmod(0o755)
    assert done.returncode == 2
    assert f"{turns}/turn_000001: Permission denied\n  hint: give yourself" in done.stderr
    assert len(list(turns.iterdir())) == 2


def test_what_was_taken_up_since_it_was_chosen_stays(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    for _ in range(3):
        ask(home, docs)
    archive = Turns(home)
    given_up = housekeeping.abandon(archive.store, InterventionQueue(home), [1], "given up")
    asyncio.run(given_up)
    for turn_id in (1, 2, 3):
        os.utime(archive.journal(turn_id), (1, 1))
    now = datetime.now(UTC)

    def prune(*turn_ids: int, before: datetime = now, **more: Any) -> int:
        keep = more.get("keep", InterventionQueue(home).turns_needed)
        return asyncio.run(retention.delete(archive.store, turn_ids, keep, before))

    chosen = asyncio.run(retention.unneeded(archive.archive, set(), now))
    assert chosen == [1, 2, 3]
    failing = scripted_flow(home, docs, synthesis=DOWN)
    asyncio.run(resume_turn(failing, 1, ResumeRequest(from_phase="synthesis")))
    os.utime(archive.journal(1), (1, 1))
    runner = archive.open(2)
    os.utime(archive.journal(2), (1, 1))
    assert prune(*chosen, 99) == 1
    asyncio.run(runner.__aexit__(None, None, None))
    assert archive.ids() == [1, 2, 4]
    os.utime(archive.journal(2), (1, 1))
    assert prune(2, keep=lambda: {2}) == 0
    assert prune(2, before=datetime.fromtimestamp(0, UTC)) == 0
    assert prune(2) == 1
    assert prune(2) == 0, "somebody else was first"
    assert archive.ids() == [1, 4]


def test_counted_turns_are_needed_and_unsaved_answers_are_not_finished(
    home: Path, docs: Path
) -> None:
    ask(home, docs)
    with closing(sqlite3.connect(home / "shared_state/sessions.sqlite3")) as store:
        store.execute(REFUSE)
        ask(home, docs)
        store.execute("DROP TRIGGER refuse")
    ask(home, docs)
    archive = Turns(home)
    unsaved = archive.load(2)
    assert unsaved is not None
    assert (unsaved.status, unsaved.saved) == ("answered", False)
    for turn_id in (1, 2, 3):
        os.utime(archive.journal(turn_id), (1, 1))
    found = retention.unneeded(archive.archive, set(), datetime.now(UTC))
    assert asyncio.run(found) == [1]
    (entry,) = open_entries(home)
    assert turns_needed([{**entry, "turns": [1]}]) == {1, 2}
    assert turns_needed([{**entry, "turns": [1], "resolved_at": "2026-01-01T00:00:00Z"}]) == set()


def test_an_answer_that_cannot_be_saved_says_so_when_it_is_resumed_too(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    ask(home, docs)
    model_server.script = script(synthesis=status(500))
    served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
    cli(home, "unified_flow", "ask", QUESTION, *served, code=1)
    model_server.script = script()
    with closing(sqlite3.connect(home / "shared_state/sessions.sqlite3")) as store:
        store.execute(REFUSE)
    for resolved in (True, False):
        done = cli(home, "unified_flow", "resume", "2")
        assert "A topic is a named bus." in done.stdout
        assert "not saved: " in done.stderr
        assert "no room for it" in done.stderr
        assert ("resolved, verified" in done.stderr) == resolved
    old, unsaved = open_entries(home)
    assert (old["phase"], bool(old["resolved_at"])) == ("synthesis", True)
    assert (unsaved["phase"], unsaved["resolved_at"], unsaved["occurrences"]) == ("save", None, 2)


@pytest.mark.parametrize("given_up", [1, 2, 3])
def test_a_group_says_that_one_of_it_is_superseded(given_up: int, home: Path, docs: Path) -> None:
    for _ in range(3):
        ask(home, docs, synthesis=DOWN)
    cli(home, "unified_flow", "turns", "abandon", str(given_up))
    listed = cli(home, "interventions", "list").stdout
    assert "[+2 alike" in listed
    assert "superseded" in listed.lower()


def test_a_turn_that_was_given_up_halfway_is_given_up_wholly(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(home, docs, synthesis=DOWN)
    with FairLock(lock_file(home)).hold(5), monkeypatch.context() as patch:
        patch.setenv("UNIFIED_FLOW_QUEUE__LOCK_TIMEOUT_S", "0.1")
        late = cli(home, "unified_flow", "turns", "abandon", "1", code=4)
    assert "Traceback" not in late.stderr
    archived = Turns(home).load(1)
    assert archived is not None
    assert archived.status == "abandoned"
    assert not open_entries(home)[0].get("superseded")
    assert "superseded: 1" in cli(home, "unified_flow", "turns", "abandon", "1").stderr
    assert open_entries(home)[0]["superseded"]
    cli(home, "unified_flow", "turns", "abandon", "1", code=2)


def test_what_other_turns_wait_for_is_not_given_up_with_one_of_them(home: Path, docs: Path) -> None:
    """Five of a session have entries of their own; the next two are counted on one of them."""
    for _ in range(7):
        ask(home, docs, synthesis=DOWN)
    (counting,) = (entry for entry in open_entries(home) if entry.get("turns"))
    assert counting["turns"] == [6, 7]

    def superseded() -> bool:
        return bool(InterventionQueue(home).find(counting["id"]).get("superseded"))

    for turn_id, given_up in ((6, False), (counting["turn_id"], False), (7, True)):
        cli(home, "unified_flow", "turns", "abandon", str(turn_id))
        assert superseded() is given_up


def test_a_turn_that_cannot_be_read_can_be_given_up(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    path = Turns(home).journal(1)
    path.write_bytes(path.read_bytes().replace(b"PROCEED", b"PROCEEC"))
    refused = cli(home, "unified_flow", "resume", "1", code=2)
    assert "its checksum differs" in refused.stderr
    cli(home, "unified_flow", "turns", "abandon", "1")
    (entry,) = open_entries(home)
    assert "turn 1 was abandoned" in entry["superseded"]
    cli(home, "unified_flow", "turns", "abandon", "1", code=1)
    # By its request id it is found all the same, which stands in the line that is whole.
    shown = cli(home, "unified_flow", "turns", "show", entry["request_id"], code=1).stderr
    assert "its checksum differs" in shown
    path.write_bytes(b"")
    emptied = cli(home, "unified_flow", "turns", "show", "1", code=3).stderr
    assert "turn 1 was never begun: there is nothing in its journal" in emptied


def test_both_doctors_name_what_no_retry_can_pass(home: Path, docs: Path) -> None:
    """Its turn was removed, with a hand or a disk; what is advised leaves nothing to tell."""
    ask(home, docs, synthesis=DOWN)
    assert "no retry can pass" not in cli(home, "interventions", "doctor").stdout
    shutil.rmtree(Turns(home).path(1))
    name = short_id(open_entries(home)[0]["id"])
    flow_s = cli(home, "unified_flow", "doctor", "--docs", docs, code=1).stdout
    for told in (cli(home, "interventions", "doctor").stdout, flow_s):
        assert f"their turns are gone or cannot be read: {name}" in told
        assert f'interventions dismiss {name} --note "its turn is gone"' in told
    every = cli(home, "interventions", "retry", name, "--all", code=3)
    assert "can never pass; which those are: interventions doctor" in every.stderr
    cli(home, "interventions", "dismiss", name, "--note", "its turn is gone")
    assert "no retry can pass" not in cli(home, "interventions", "doctor").stdout


def test_a_turn_that_runs_says_who_runs_it(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    running = Turns(home).open(1)
    resumed = TurnResumed(
        phase="synthesis", runner=this_process("ada"), by="ada", via="cli", config_digest=""
    )
    asyncio.run(running.begin(resumed))
    refused = cli(home, "unified_flow", "turns", "abandon", "1", code=5)
    asyncio.run(running.__aexit__(None, None, None))
    assert "is being resumed by ada on " in refused.stderr
    assert "since 2" in refused.stderr


def test_the_card_tells_what_helped_before(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(500))
    served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
    cli(home, "unified_flow", "ask", QUESTION, *served, code=1)
    model_server.script = script()
    (entry,) = open_entries(home)
    cli(home, "interventions", "resolve", entry["id"], "-m", "restarted the server", "--retry")
    model_server.script = script(synthesis=status(500))
    again = cli(home, "unified_flow", "ask", QUESTION, *served, code=1)
    said = f"resolved before: {short_id(entry['id'])}: restarted the server (verified, "
    assert said in again.stderr
    regression = open_entries(home)[-1]
    shown = cli(home, "interventions", "show", regression["id"]).stdout
    # In the same words, after the entry that it closed.
    assert f"{short_id(entry['id'])}: restarted the server (verified, " in shown


def test_a_turn_stays_as_long_as_its_failure_waits_in_the_emergency_log(
    home: Path, docs: Path
) -> None:
    """The queue is full: the failure is dropped, drained later, and its turn can be resumed."""
    small = InterventionQueue(home, max_size=1)
    small.put(
        InterventionRequest(
            type="error",
            severity="high",
            phase="save",
            error_type="Other",
            error_message="m",
            session_id="s",
            turn_id=0,
        )
    )

    async def fail() -> PhaseError:
        async with scripted_flow(home, docs, synthesis=RuntimeError("down")) as flow:
            flow = UnifiedFlow(replace(flow.services, queue=small))
            with pytest.raises(PhaseError) as raised:
                await flow.process("s", QUESTION, persist=False)
            return raised.value

    error = asyncio.run(fail())
    assert error.intervention_id is None
    ephemeral = EphemeralTurns(scripted_flow(home, docs).services)
    assert asyncio.run(ephemeral.remove_closed()) == 0
    assert small.turns_needed() == {1}
    small.resolve(small.entries()[0]["id"], "mended")
    (name,) = recover(small, lost=False).put.values()
    assert small.turns_needed() == {1}

    async def resume() -> str:
        flow = scripted_flow(home, docs)
        return (await resume_turn(flow, 1, ResumeRequest(note="up again"))).status

    assert asyncio.run(resume()) == "answered"
    assert small.find(name)["resolution"] == "up again"
    assert small.turns_needed() == set()
