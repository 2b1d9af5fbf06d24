"""A home as version 0.1 left it (`make_home.py`): every later version reads it and goes on with it.

What is asserted is what a user of that home sees. These files are never made anew.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.compat.make_home import TOPIC, script
from tests.servers.model_server import ModelServer

HOME = Path(__file__).parent / "v0_1"
MADE_AT = "/srv/example/home"
POLICIES = ("fail_fast", "graceful", "silent")
ENDS = {
    "answered": "answered",
    "failed": "failed",
    "killed": "interrupted",  # by SIGKILL
    "stopped": "interrupted",  # by Ctrl-C
}
TURNS = {  # number: session and status
    number: turn
    for number, turn in enumerate(
        [
            *((f"{end}-{policy}", status) for policy in POLICIES for end, status in ENDS.items()),
            ("flags", "failed"),
            ("rules", "answered"),
            ("rules", "answered"),
            ("revised", "answered"),
            ("clarify", "clarify"),
            ("long", "failed"),
            ("loop", "failed"),
            ("writes", "failed"),
            ("legal", "silenced"),
            ("blocked", "silenced"),
            ("retried", "answered"),
            ("given-up", "abandoned"),
            ("crowded", "failed"),
            ("crowded", "failed"),
        ],
        1,
    )
}
ANSWER = "A topic is a named bus."
REPLAY_ALL = """\
import sys
from unified_flow.__main__ import main

for turn_id in list(sys.argv[1:]):
    sys.argv = ["unified-flow", "replay", turn_id, "--json"]
    try:
        main()
    except SystemExit:
        pass
"""


class Old:
    """A copy of the home, and the commands in it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def command(
        self, *words: str, code: int = 0, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        outside = {k: v for k, v in os.environ.items() if not k.startswith("UNIFIED_FLOW_")}
        named = {f"UNIFIED_FLOW_{name.upper()}": value for name, value in settings.items()}
        done = forked.run(
            [sys.executable, *words],
            env={**outside, **named, "UNIFIED_FLOW_HOME": str(self.home)},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def flow(self, *words: str, code: int = 0, **settings: str) -> str:
        return str(self.command("-m", "unified_flow", *words, code=code, **settings).stdout)

    def queue(self, *words: str, code: int = 0, **settings: str) -> str:
        return str(self.command("-m", "interventions", *words, code=code, **settings).stdout)

    def listed(self, *query: str, command: str = "list") -> list[dict[str, Any]]:
        found: list[dict[str, Any]]
        found = json.loads(self.queue(command, *query, "--json"))["interventions"]
        return found

    def entry(self, session: str) -> dict[str, Any]:
        (found,) = self.listed(f"session:{session}")
        return found

    def turn(self, turn_id: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.flow("turns", "show", str(turn_id), "--json"))
        return found


@pytest.fixture
def old(tmp_path: Path) -> Old:
    """As it lay on its disk: the modes that git does not keep, and paths that are there."""
    home = tmp_path / "home"
    shutil.copytree(HOME, home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    with sqlite3.connect(home / "shared_state/index/documents.sqlite3") as index:
        for table in ("root", "file"):
            renamed = f"UPDATE {table} SET path = CAST(replace(path, ?, ?) AS BLOB)"
            assert index.execute(renamed, (MADE_AT, str(home))).rowcount
    index.close()
    return Old(home)


@pytest.fixture
def served(model_server: ModelServer) -> dict[str, str]:
    """The settings with which the turns were asked, and a server that answers well."""
    model_server.script = script()
    return {"model": "test-model", "base_url": model_server.url}


def test_nothing_in_it_is_damaged(old: Old) -> None:
    queue = old.queue("doctor", "--check")
    assert "21 entries, 16 open" in queue
    # What its killed processes had left reaches a person now.
    for code, told in ((1, ["cut off"]), (0, [])):
        flow = json.loads(old.flow("doctor", "--json", code=code))
        assert [check["name"] for check in flow["checks"] if not check["ok"]] == told


# The queue


def test_the_queue_is_listed_and_shown(old: Old) -> None:
    waiting = old.listed()
    assert len(waiting) == 16
    for entry in waiting:
        if entry["session_id"] in ("merged", "failed-silent", "writes", "legal", "long"):
            shown = json.loads(old.queue("show", entry["id"], "--json"))
            assert shown["error_message"] == entry["error_message"]
            assert entry["short_id"] in old.queue("show", entry["short_id"])
    assert {e["session_id"] for e in old.listed("is:snoozed")} == {"snoozed", "until"}
    assert {e["session_id"] for e in old.listed("is:regression")} == {"again", "crowded"}
    assert {e["session_id"] for e in old.listed("is:superseded")} == {"given-up"}
    merged = old.entry("merged")
    assert (merged["occurrences"], len(merged["merged"])) == (3, 1)
    assert old.entry("assigned")["owner"] == "bob"
    health = json.loads(old.queue("health", "--json"))
    assert (health["unresolved"], health["snoozed"], health["dropped"]) == (
        16,
        2,
        {"queue_full": 1},
    )


def test_what_was_closed_is_history_and_helps_with_what_is_open(old: Old) -> None:
    closed = {each["error_message"]: each for each in old.listed(command="history")}
    assert closed["catalogue one is empty"]["resolution"] == "filled catalogue one"
    assert closed["catalogue two is empty"]["state"] == "resolved"
    assert closed["catalogue dismissed is closed"]["state"] == "dismissed"
    (retried,) = [each for each in closed.values() if each["session_id"] == "retried"]
    assert retried["resolutions"][0]["verified"]
    assert len(closed) == 7
    assert "opened it for good" in old.queue("similar", old.entry("again")["id"])


def test_a_person_goes_on_with_its_entries(old: Old) -> None:
    archived = next(e for e in old.listed(command="history") if e["session_id"] == "archived")
    old.queue("reopen", archived["id"])
    assert old.entry("archived")["resolution"] is None
    again = old.entry("undone")["id"]
    old.queue("resolve", again, "-m", "now it is open")
    assert old.listed("session:undone") == []
    old.queue("undo", again)
    assert old.entry("undone")["state"] == "open"
    old.queue("undo", old.entry("snoozed")["id"])
    assert old.entry("snoozed")["state"] == "open"
    old.queue("dismiss", old.entry("merged")["id"], "-m", "not ours", "--yes")
    assert old.listed("session:merged") == []
    old.queue("drain")
    assert old.entry("dropped")["error_message"] == "no room"
    assert "fine" in old.queue("doctor", "--check", "--json")


def test_a_queue_that_was_lost_is_rebuilt_from_its_logs(old: Old) -> None:
    before = {e["id"]: e["state"] for e in old.listed()}
    (old.home / "shared_state/intervention_queue.json").write_text("{damaged")
    old.queue("doctor")
    assert {e["id"]: e["state"] for e in old.listed() if e["session_id"] != "dropped"} == before


# Its turns


def test_its_turns_are_listed_and_shown(old: Old) -> None:
    turns = json.loads(old.flow("turns", "list", "--limit", "50", "--json"))["turns"]
    assert {t["turn_id"]: (t["session_id"], t["status"]) for t in turns} == TURNS
    assert old.turn(1)["response"] == ANSWER
    assert old.turn(17)["response"] == "Which?"
    assert (old.turn(14)["question"], old.turn(14)["resumed"]) == ("What is a service?", 1)
    for turn_id in (2, 3, 4, 20):
        assert "## 1. reflection" in old.flow("turns", "show", str(turn_id), "--full")
    failed = old.turn(10)
    assert (failed["failed_phase"], failed["response"]) == ("synthesis", None)
    assert "failed-silent" in old.flow("trace", failed["request_id"])


def test_its_turns_replay_as_they_went(old: Old) -> None:
    """One process for all: each replay would else take half a second to begin."""
    numbers = list(map(str, TURNS))
    replayed = old.command("-c", REPLAY_ALL, *numbers).stdout.splitlines()
    assert [json.loads(line)["same"] for line in replayed] == [True] * len(TURNS)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_failed_goes_on_and_closes_its_entry(
    old: Old, policy: str, served: dict[str, str], model_server: ModelServer
) -> None:
    entry = old.entry(f"failed-{policy}")
    old.queue("resolve", entry["id"], "-m", "loaded it", "--retry", policy=policy, **served)
    assert model_server.phases == ["synthesis", "validation"]
    turn = old.turn(entry["turn_id"])
    assert (turn["status"], turn["response"]) == ("answered", ANSWER)
    (closed,) = old.listed(f"session:failed-{policy}", command="history")
    assert closed["resolutions"][0]["verified"]
    assert json.loads(old.flow("replay", str(entry["turn_id"]), "--json"))["same"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_cut_off_goes_on(
    old: Old, policy: str, served: dict[str, str], model_server: ModelServer
) -> None:
    for how in ("killed", "stopped"):
        turn_id = next(n for n, (session, _) in TURNS.items() if session == f"{how}-{policy}")
        done = old.flow("resume", str(turn_id), "--json", policy=policy, **served)
        assert json.loads(done)["status"] == "answered"
        assert old.turn(turn_id)["response"] == ANSWER
        assert ANSWER in old.flow("sessions", "show", f"{how}-{policy}")
    assert model_server.phases == ["synthesis", "validation"] * 2


@pytest.mark.parametrize("session", ["long", "loop"])
def test_what_a_model_had_done_wrongly_goes_on(
    old: Old, session: str, served: dict[str, str]
) -> None:
    entry = old.entry(session)
    old.queue("retry", entry["id"], "-m", "left it to rules", **served)
    assert old.turn(entry["turn_id"])["response"] == ANSWER
    assert old.listed(f"session:{session}") == []


def test_a_call_that_waits_is_granted(old: Old, served: dict[str, str]) -> None:
    entry = old.entry("writes")
    granted = ("--retry", "--grant", "once")
    old.queue("resolve", entry["id"], "-m", "it may", *granted, **served)
    turn = old.turn(entry["turn_id"])
    assert turn["status"] == "answered"
    assert "noted: once" in json.dumps(turn["sections"]["coordinator"])


def test_turns_that_wait_for_one_fix_go_on_together(old: Old, served: dict[str, str]) -> None:
    entry = old.entry("crowded")
    assert (entry["occurrences"], entry["turns"]) == (2, [26])
    done = json.loads(old.queue("retry", entry["id"], "--all", "--yes", "--json", **served))
    assert {25, 26} <= {turn["turn_id"] for turn in done["passed"]}
    assert old.listed("session:crowded") == []


def test_the_flags_of_the_question_hold_and_can_be_named_anew(
    old: Old, model_server: ModelServer, served: dict[str, str]
) -> None:
    there = ("--docs", str(old.home / "docs"), "--base-url", served["base_url"])
    assert json.loads(old.flow("resume", "13", *there, "--json"))["status"] == "answered"
    assert model_server.requests[-1].body["model"] == "test-model"
    again = json.loads(old.flow("resume", "24", "--from", "planner", "--json", **served))
    assert (again["status"], old.turn(24)["response"]) == ("answered", ANSWER)


# What it knows


def test_its_sessions_are_shown_and_gone_on_with(old: Old) -> None:
    listed = json.loads(old.flow("sessions", "list", "--json"))["sessions"]
    answered = {session for session, status in TURNS.values() if status == "answered"}
    assert {each["session_id"] for each in listed} == answered
    assert "sensor data" in old.flow("sessions", "show", "rules")
    assert "docs/robots.md:5" in old.flow("sessions", "export", "rules")
    said = json.loads(
        old.flow("ask", "And how long does dough rest?", "--session", "rules", "--json")
    )
    assert said["turn_id"] == len(TURNS) + 1
    shown = json.loads(old.flow("sessions", "show", "rules", "--json"))["exchanges"]
    assert [each["turn_id"] for each in shown] == [14, 15, 27]


def test_its_index_answers(old: Old) -> None:
    assert "A topic is a named bus" in old.flow("search", "topic")
    assert "docs/robots.md:5" in old.flow("ask", TOPIC)
    (old.home / "docs/new.md").write_text("# Actions\n\nAn action is a long-running service.\n")
    assert "docs/new.md:3" in old.flow("ask", "What is an action?")
    assert json.loads(old.flow("collections", "show", "--json"))["files"] == 3


def test_its_rules_hold_and_its_decisions_are_listed(old: Old) -> None:
    assert "flagged_phrase:act now" in old.flow("rules", "test", "Act now!", "--json", code=1)
    assert "escalate" in old.flow("rules", "test", "my lawyer", code=1)
    old.flow("rules", "test", "SPAM", "--user", "anna", code=1)
    old.flow("rules", "test", "hello", "--user", "anna", "--channel", "comment", code=1)
    decided = json.loads(old.flow("decisions", "list", "--json"))["decisions"]
    assert len(decided) == 12
    assert "flagged_keyword:lottery" in [each["matched_rule"] for each in decided]
    said = json.loads(old.flow("ask", "What can I win in the lottery?", "--json"))
    assert said["status"] == "silenced"


def test_its_memories_are_known(old: Old) -> None:
    assert "I work with ROS 2" in old.flow("memory", "list")
    assert "Likes tea" in old.flow("memory", "list", "--user", "anna")
    assert "ROS 2" in old.flow("ask", "What do you know about me?")
