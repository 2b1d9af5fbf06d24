"""`unified-flow ask` as a process of its own, the way a person or a script runs it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.answers import QUESTION, every_phase_by_model, open_entries, script
from tests.servers.model_server import ModelServer, hang, refused_url, status
from unified_flow.phases import NAMES

FIELDS = {
    "response",
    "status",
    "clarification_question",
    "citations",
    "abstained",
    "checks",
    "understood_as",
    "error",
    "session_id",
    "turn_id",
    "fork_of",
    "request_id",
    "saved",
    "phases",
    "model_calls",
}
FAILURE = {"error_type", "error_category", "phase", "intervention_id", "message", "partial"}


def run(
    *args: str | Path,
    home: Path,
    stdin: bytes = b"",
    start: Callable[..., subprocess.CompletedProcess[bytes]] = forked.run,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    done = start(
        [sys.executable, "-m", "unified_flow", *map(str, args)],
        input=stdin,
        capture_output=True,
        timeout=60,
        env={**os.environ, "UNIFIED_FLOW_HOME": str(home), **env},
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_the_embedded_model_answers_with_a_source_that_is_true(home: Path, docs: Path) -> None:
    done = run("ask", "What are topics for?", "--docs", docs, "--json", home=home)
    outcome = said(done)
    assert done.returncode == 0
    assert set(outcome) == FIELDS
    assert (outcome["status"], outcome["abstained"], outcome["saved"]) == ("answered", False, True)
    assert {step["name"] for step in outcome["phases"]} == set(NAMES)
    source, _, line = outcome["citations"][0]["source"].rpartition(":")
    text = (docs.parent / source).read_text().splitlines()[int(line) - 1]
    quote = " ".join(outcome["citations"][0]["quote"].split())
    assert quote in text
    assert "continuous data streams" in quote


def test_an_answer_that_is_not_there_is_an_honest_success(home: Path, docs: Path) -> None:
    done = run("ask", "Who won the chess olympiad of 1972?", "--docs", docs, "--json", home=home)
    outcome = said(done)
    assert done.returncode == 0
    assert (outcome["abstained"], outcome["citations"], outcome["error"]) == (True, [], False)


def test_a_pipe_gets_nothing_but_the_answer(home: Path, docs: Path) -> None:
    fresh = subprocess.run  # for this once, from the start
    done = run("ask", "What are topics for?", "--docs", docs, home=home, start=fresh)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "continuous data streams" in done.stdout
    assert "\x1b" not in done.stdout
    assert "query_analyzer" not in done.stdout


def test_it_is_understood_in_a_session(home: Path, docs: Path) -> None:
    for question in ("What is a service?", "Are they for long-running work?"):
        done = run("ask", question, "--docs", docs, "--session", "s", "--json", home=home)
    assert "long-running" in str(said(done)["response"])


def test_a_failure_ends_with_a_card_whose_commands_work(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(500))
    served = ("--model", "m", "--base-url", model_server.url)
    done = run("ask", QUESTION, "--docs", docs, *served, home=home)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "synthesis failed" in done.stderr
    assert "500" in done.stderr
    commands = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
    show, turn, resolve = (line for line in commands if line.split()[0].startswith(("int", "uni")))
    assert run(*turn.split()[1:], home=home).returncode == 0
    model_server.script = script(planner=script()["planner"][1:])
    for command in (show, resolve.replace('"what you mended"', "mended")):
        module, *args = command.split()
        ran = forked.run(
            [sys.executable, "-m", module, *args],
            env={**os.environ, "UNIFIED_FLOW_HOME": str(home)},
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    (entry,) = open_entries(home)
    assert entry["resolution"] == "mended"


@every_phase_by_model
def test_a_failure_in_json(home: Path, docs: Path) -> None:
    served = ("--model", "m", "--base-url", refused_url())
    done = run("ask", QUESTION, "--docs", docs, *served, "--json", home=home)
    outcome = said(done)
    assert done.returncode == 1
    assert set(outcome) == FIELDS | FAILURE
    assert (outcome["status"], outcome["error"], outcome["response"]) == ("failed", True, None)
    assert (outcome["error_type"], outcome["phase"]) == ("QueryAnalyzerError", "query_analyzer")
    assert outcome["error_category"] == "llm_error"
    assert outcome["intervention_id"] == open_entries(home)[0]["id"]


def test_exit_code_4_if_nobody_could_be_told(home: Path, docs: Path) -> None:
    (home / "shared_state").mkdir()
    (home / "shared_state" / "intervention_queue.json").mkdir()
    served = ("--model", "m", "--base-url", refused_url())
    done = run("ask", QUESTION, "--docs", docs, *served, "--json", home=home)
    assert done.returncode == 4
    assert said(done)["intervention_id"] is None
    emergency = list((home / "logs/errors").glob("emergency_*.jsonl"))
    assert len(emergency) == 1
    assert "ConnectError" in emergency[0].read_text()


@every_phase_by_model
def test_a_clarifying_question_is_a_success(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    asks = {"decision": "CLARIFY", "confidence": 1, "clarification_question": "Which one?"}
    model_server.script = script(reflection=asks)
    served = ("--model", "m", "--base-url", model_server.url)
    done = run("ask", "What about it?", "--docs", docs, *served, "--json", home=home)
    outcome = said(done)
    assert done.returncode == 0
    assert (outcome["status"], outcome["clarification_question"]) == ("clarify", "Which one?")


BAD_INPUT: dict[str, tuple[list[str], bytes]] = {
    "empty question": (["ask", ""], b""),
    "over-long": (["ask", "x" * 2001], b""),
    "10 MB on standard input": (["ask", "-"], b"x" * 10_000_000),
    "binary on standard input": (["ask", "-"], bytes(range(256)) * 10),
    "null bytes on standard input": (["ask", "-"], b"what\0is"),
    "lone surrogate in an argument": (["ask", "a\udcffb"], b""),
    "documents that are not there": (["ask", "what?", "--docs", "/nowhere/at/all"], b""),
    "a batch that is not there": (["ask", "--batch", "/nowhere/at/all"], b""),
    "nothing to do": (["ask"], b""),
    "unknown model": (["ask", "what?", "--model", "gpt-x"], b""),
    "a server and no model": (["ask", "what?", "--base-url", "http://127.0.0.1:9/v1"], b""),
    "a batch in a session": (["ask", "--batch", "x", "--session", "s"], b""),
    "a key named as an argument": (["ask", "what?", "--api-key", "sk-1"], b""),
}


@pytest.mark.parametrize("kind", BAD_INPUT)
def test_bad_input_is_one_clear_line(kind: str, home: Path) -> None:
    args, stdin = BAD_INPUT[kind]
    done = run(*args, home=home, stdin=stdin)
    assert done.returncode == 2
    assert done.stdout == ""
    said = [
        line for line in done.stderr.splitlines() if not line.startswith(("Usage", "Try", "  "))
    ]
    assert len([line for line in said if line]) == 1
    assert not (home / "shared_state" / "turns").exists()
    assert not (home / "shared_state" / "intervention_queue.json").exists()


def test_material_on_standard_input_is_not_read_as_a_question(home: Path) -> None:
    # Only the beginning is read: what follows is no UTF-8 text.
    done = run("ask", "-", home=home, stdin=b"x" * 3_000_000 + b"\xff")
    assert done.returncode == 2
    assert "holds more than 1,000,000 characters" in done.stderr
    assert "put the material into a document" in done.stderr


def test_a_question_may_come_over_a_socket_as_from_an_ssh_server(home: Path, docs: Path) -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(b"What is a topic?\n")
        here.shutdown(socket.SHUT_WR)
        command = [sys.executable, "-m", "unified_flow", "ask", "-", "--docs", str(docs)]
        done = forked.run(
            [*command, "--home", str(home)], stdin=there, capture_output=True, text=True, check=True
        )
    assert "topic" in done.stdout


def test_a_script_gets_its_object_also_for_bad_input(home: Path) -> None:
    done = run("ask", "what?", "--docs", "/nowhere/at/all", "--json", home=home)
    outcome = said(done)
    assert done.returncode == 2
    assert set(outcome) == FIELDS | FAILURE
    assert (outcome["error_type"], outcome["turn_id"]) == ("ValidationError", None)


def test_a_folder_without_documents(home: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run("ask", "what?", "--docs", empty, home=home)
    assert done.returncode == 2
    assert "No documents" in done.stderr


def test_without_documents_it_says_how_to_name_some(home: Path) -> None:
    done = run("ask", "Where are the keys?", home=home)
    assert done.returncode == 0
    assert "--docs" in done.stderr


def test_without_turns_the_last_one_is_none(home: Path) -> None:
    done = run("replay", "last", home=home)
    assert done.returncode == 3
    assert "there are no turns yet" in done.stderr


UNPRIVILEGED = """
import os, sys
from unified_flow.cli.app import app

def ask(home):
    try:
        app(["ask", "What are topics for?", "--docs", sys.argv[1], "--home", home])
    except SystemExit as exc:
        return exc.code

# The first one loads all modules, which may lie where only root can read.
assert ask(sys.argv[2]) == 0
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
sys.exit(ask(sys.argv[3]))
"""


def test_a_home_that_cannot_be_written(home: Path, tmp_path: Path, docs: Path) -> None:
    """As somebody who is not root, for whom a folder without the write bit is closed."""
    closed = tmp_path / "closed"
    closed.mkdir()
    for folder in (docs, closed, *closed.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    closed.chmod(0o555)
    done = forked.run(
        [sys.executable, "-c", UNPRIVILEGED, str(docs), str(home), str(closed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "--home" in done.stderr
    assert list(closed.iterdir()) == []


@every_phase_by_model
def test_interrupting_is_no_failure(home: Path, docs: Path, model_server: ModelServer) -> None:
    import signal

    model_server.script = script(reflection=hang())
    process = forked.Process(
        [
            *(sys.executable, "-m", "unified_flow", "ask", QUESTION, "--docs", str(docs)),
            *("--model", "m", "--base-url", model_server.url, "--home", str(home)),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while "reflection" not in model_server.phases:
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert f"to go on: unified-flow resume 1 --home {home}" in stderr
    assert open_entries(home) == []
    listed = json.loads(run("turns", "list", "--json", home=home).stdout)
    assert [turn["status"] for turn in listed["turns"]] == ["interrupted"]


def test_a_batch_goes_on_after_a_failed_question(
    home: Path, docs: Path, model_server: ModelServer, tmp_path: Path
) -> None:
    good = script()["synthesis"]
    plans = script()["planner"]
    model_server.script = script(synthesis=[good, status(500), good], planner=plans * 3)
    questions = tmp_path / "questions.txt"
    lines = [
        QUESTION,
        '{"id": 7, "question": "Two?", "session_id": "mine"}',
        "",
        '{"id":',
        "Three?",
    ]
    questions.write_text("\n".join(lines))
    served = ("--model", "m", "--base-url", model_server.url)
    done = run("ask", "--batch", questions, "--jsonl", "--docs", docs, *served, home=home)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["status"] for row in rows] == ["answered", "failed", "failed", "answered"]
    assert (rows[1]["id"], rows[1]["session_id"]) == (7, "mine")
    assert rows[1]["error_type"] == "SynthesisError"
    assert (rows[2]["line"], rows[2]["turn_id"]) == (4, None)
    sessions = [row["session_id"] for row in rows]
    assert len(set(sessions)) == 4
    assert done.returncode == 1
    assert len(open_entries(home)) == 1


def test_a_batch_reads_no_page_that_nobody_has_allowed_and_says_what_would(
    home: Path, tmp_path: Path
) -> None:
    page = tmp_path / "docs/csrf.md"
    page.parent.mkdir()
    page.write_text(
        "# CSRF\n\nThe CSRF cookie is named csrftoken.\n\n# csrf\n\nr'https://a/csrf'\n"
    )
    questions = tmp_path / "questions.txt"
    questions.write_text(
        "Summarize https://docs.example.org/en/\n"
        "In https://docs.example.org/a/csrf/ how is the CSRF cookie named?\n"
    )
    done = run("ask", "--batch", questions, "--jsonl", "--docs", page.parent, home=home)
    summary, named = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, summary["abstained"]) == (0, True)
    assert "--allow-tool internet.research" in summary["response"]
    assert named["citations"][0]["quote"] == "The CSRF cookie is named csrftoken."
    assert open_entries(home) == []


def test_every_request_is_one_line_of_the_query_log_without_its_words(
    home: Path, docs: Path
) -> None:
    asked = said(run("ask", "What are topics for?", "--docs", docs, "--json", home=home))
    text = (home / "logs/rag_queries.jsonl").read_text()
    (line,) = [json.loads(row) for row in text.splitlines()]
    assert line["request_id"] == asked["request_id"]
    assert line["turn_id"] == asked["turn_id"]
    assert "topics" not in text


def test_turns_are_shown_by_number_and_by_request(home: Path, docs: Path) -> None:
    asked = said(run("ask", "What are topics for?", "--docs", docs, "--json", home=home))
    for name in ("1", asked["request_id"]):
        shown = run("turns", "show", name, home=home)
        assert "What are topics for?" in shown.stdout
        assert "7 save" in shown.stdout
    whole = json.loads(run("turns", "show", "1", "--json", home=home).stdout)
    assert whole["sections"]["synthesis"]["response"] == asked["response"]
    assert run("turns", "show", "99", home=home).returncode == 3


def test_doctor_names_what_is_wrong_and_how_to_mend_it(home: Path, docs: Path) -> None:
    assert run("doctor", "--docs", docs, home=home).returncode == 0
    (home / "recipes").mkdir()
    (home / "recipes" / "planner.md").write_text("nothing")
    served = ("--model", "m", "--base-url", refused_url())
    done = run("doctor", "--docs", docs, *served, "--json", home=home)
    wrong = {check["name"]: check for check in json.loads(done.stdout)["checks"] if not check["ok"]}
    assert done.returncode == 1
    assert set(wrong) == {"recipe", "model m"}
    assert all(check["hint"] for check in wrong.values())
    assert "planner.md:1" in wrong["recipe"]["message"]


@pytest.mark.parametrize(
    "mistake",
    ['docs = ["gone"]', 'polcy = "x"', "model = ", 'model = "x"', '[notifications]\nvectors = "x"'],
)
def test_doctor_says_what_is_wrong_with_the_settings(mistake: str, home: Path) -> None:
    (home / "unified_flow.toml").write_text(mistake + "\n")
    assert run("ask", QUESTION, home=home).returncode != 0
    done = run("doctor", "--json", home=home)
    (check,) = json.loads(done.stdout)["checks"]
    assert (done.returncode, check["name"], check["ok"]) == (1, "settings", False)


def test_escape_sequences_in_a_document_do_not_reach_the_terminal(home: Path, docs: Path) -> None:
    (docs / "evil.md").write_text(
        "# Evil\n\nThe gizmo is [bold]red[/bold] \x1b]0;owned\x07 here.\n"
    )
    done = run("ask", "What is the gizmo?", "--docs", docs, home=home)
    assert "\x1b" not in done.stdout
    assert "[bold]red[/bold]" in done.stdout


def test_a_batch_from_a_pipe_names_what_waits_and_what_a_line_may_hold(
    home: Path, docs: Path
) -> None:
    lines = b'What are topics for?\n{"question": "Two?", "sesion_id": "mine"}\n'
    done = run("ask", "--batch", "-", "--docs", docs, home=home, stdin=lines)
    assert done.returncode == 1
    assert "continuous data streams" in done.stdout
    assert "line 2: sesion_id: " in done.stdout
    assert '{"id"?, "question", "session_id"?}' in done.stdout
    assert "interventions" not in done.stderr  # there is none


def test_quiet_prints_the_answer_alone(home: Path, docs: Path) -> None:
    found = run("ask", "-q", "What are topics for?", "--docs", docs, home=home)
    assert "continuous data streams" in found.stdout
    assert (found.returncode, found.stderr) == (0, "")
    nothing = run("ask", "--quiet", "Who painted the ceiling?", "--docs", docs, home=home)
    assert (nothing.returncode, nothing.stderr) == (0, "")
    assert len(nothing.stdout.strip().splitlines()) == 1
    refused = run("ask", "-q", "--json", "What?", home=home)
    assert refused.returncode == 2


def test_only_conversations_are_listed_unless_all_are_asked_for(home: Path, docs: Path) -> None:
    for words in (["What are topics for?"], ["What are services for?"], ["And topics?", "--last"]):
        assert run("ask", *words, "--docs", docs, home=home).returncode == 0
    (shown,) = said(run("sessions", "list", "--json", home=home))["sessions"]
    assert (shown["turns"], shown["opening"]) == (2, "What are services for?")
    assert len(said(run("sessions", "list", "--all", "--json", home=home))["sessions"]) == 2
    both = run("ask", "--last", "--session", "mine", "What?", home=home)
    assert (both.returncode, "--session, or --last" in both.stderr) == (2, True)
