"""A disk that is full, before a turn and in the middle of one: a bounded file size is as good."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked

ASK = """
import resource, sys
from tests import forked
from unified_flow.cli.app import app
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
app(sys.argv[2:])
"""


def ask(limit_bytes: int, home: Path, docs: Path) -> subprocess.CompletedProcess[str]:
    warm = [sys.executable, "-m", "unified_flow", "index", str(docs), "--home", str(home)]
    forked.run(warm, check=True, capture_output=True)
    question = ["ask", "What are topics for?", "--docs", str(docs), "--home", str(home), "--json"]
    return forked.run(
        [sys.executable, "-c", ASK, str(limit_bytes), *question],
        capture_output=True,
        text=True,
        check=False,
    )


def test_before_the_turn_has_begun_nothing_is_left(home: Path, docs: Path) -> None:
    done = ask(100, home, docs)
    assert done.returncode == 2
    assert "no turn can be begun" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((home / "shared_state" / "turns").iterdir()) == []


@pytest.mark.parametrize("limit_bytes", [1600, 2500, 4000])
def test_in_the_middle_the_turn_halts_and_the_failure_is_not_lost(
    limit_bytes: int, home: Path, docs: Path
) -> None:
    done = ask(limit_bytes, home, docs)
    outcome = json.loads(done.stdout)
    assert done.returncode in (1, 4)
    assert outcome["status"] == "failed"
    assert "File too large" in outcome["message"]
    assert "Traceback (most recent call last)" not in done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    kept = [path for path in (home / "logs").rglob("*.jsonl") if path.stat().st_size]
    assert told or kept, "the queue, the emergency log or, last of all, stderr"
    journal = home / "shared_state/turns/turn_000001/journal.jsonl"
    assert journal.read_bytes().endswith(b"\n"), "no half a line"


def test_a_turn_that_cannot_go_on_for_want_of_room_stands_as_it_stood(
    home: Path, docs: Path
) -> None:
    ask(2500, home, docs)
    journal = home / "shared_state/turns/turn_000001/journal.jsonl"
    before = journal.read_bytes()
    limit = str(len(before) + 10)
    done = forked.run(
        [sys.executable, "-c", ASK, limit, "resume", "1", "--home", str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert str(journal.parent) in done.stderr
    assert "make room there" in done.stderr
    assert "goes on at" not in done.stderr
    assert journal.read_bytes() == before


def test_a_fork_that_cannot_go_on_for_want_of_room_is_gone(home: Path, docs: Path) -> None:
    ask(-1, home, docs)
    fork = ["resume", "1", "--from", "synthesis", "--home", str(home)]
    limited = [sys.executable, "-c", ASK]
    forked.run([*limited, "-1", *fork], check=True, capture_output=True)
    turns = home / "shared_state/turns"
    first = (turns / "turn_000002/journal.jsonl").read_bytes().partition(b"\n")[0]
    limit = str(len(first) + 10)
    done = forked.run([*limited, limit, *fork], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "turn 3 is its fork" in done.stderr, "there was room for its first line"
    assert "nothing has happened" in done.stderr
    assert sorted(path.name for path in turns.iterdir()) == ["turn_000001", "turn_000002"]


def test_the_limit_does_bite(tmp_path: Path) -> None:
    """So that the tests above cannot pass for want of a limit."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, -1)); "
    code += "import sys; f = open(sys.argv[1], 'wb', 0); f.write(b'x' * 9); f.write(b'x')"
    done = forked.run(
        [sys.executable, "-c", code, str(tmp_path / "f")], capture_output=True, check=False
    )
    assert b"File too large" in done.stderr
