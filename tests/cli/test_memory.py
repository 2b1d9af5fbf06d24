"""`unified-flow memory`, as it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import forked


def memory(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unified_flow", "memory", *args, "--home", str(home)]
    return forked.run(command, capture_output=True, text=True, check=False)


def test_add_list_and_delete(home: Path) -> None:
    made = memory(home, "add", "I work with ROS 2").stdout.strip()
    memory(home, "add", "Likes tea", "--user", "anna")
    assert f"{made}  " in memory(home, "list").stdout
    assert "tea" not in memory(home, "list").stdout
    listed = json.loads(memory(home, "list", "--user", "anna", "--json").stdout)
    assert [each["text"] for each in listed["memories"]] == ["Likes tea"]
    gone = memory(home, "delete", made, "m000000")
    assert f"deleted: {made}" in gone.stdout
    assert "no memory m000000" in gone.stderr
    assert gone.returncode == 3
    assert "nothing is remembered of default" in memory(home, "list").stderr


def test_a_secret_is_refused_in_words(home: Path) -> None:
    refused = memory(home, "add", "password: hunter2hunter2")
    assert refused.returncode == 2
    assert "seems to hold a secret" in refused.stderr
    assert "hunter2" not in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr


def test_doctor_names_a_file_of_memories_that_cannot_be_read(home: Path) -> None:
    folder = home / "shared_state" / "memory"
    folder.mkdir(parents=True)
    (folder / "anna.jsonl").write_text('{"id": "m1", "te\n')
    command = [sys.executable, "-m", "unified_flow", "doctor", "--json", "--home", str(home)]
    done = forked.run(command, capture_output=True, text=True, check=False)
    checks = json.loads(done.stdout)["checks"]
    (found,) = [check for check in checks if check["name"] == "memory"]
    assert not found["ok"]
    assert "anna.jsonl" in found["message"]
    assert found["hint"]


def test_what_is_remembered_answers_a_question_about_the_person(home: Path, docs: Path) -> None:
    def ask(question: str) -> str:
        command = [sys.executable, "-m", "unified_flow", "ask", question, "--docs", str(docs)]
        done = forked.run(
            [*command, "--home", str(home)],
            capture_output=True,
            text=True,
            check=True,
        )
        return str(done.stdout)

    assert "Nothing is remembered of you." in ask("What do you know about me?")
    ask("Remember that I use ROS 2 Humble.")
    for asked in ("Do I use ROS 2 Humble?", "What ROS do I use?", "What do you know about me?"):
        said = ask(asked)
        assert "I use ROS 2 Humble." in said
        assert "clearly answers" not in said
    assert "Humble" not in ask("What is a topic?")
