"""Secrets that are said, files that are damaged, types that are wrong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import forked, in_process
from tests.answers import (
    NOTHING_CLAIMED,
    PROCEED,
    QUESTION,
    open_entries,
    script,
    scripted_flow,
    served_flow,
)
from tests.servers.model_server import ModelServer, answer, status
from unified_flow.errors import InputError
from unified_flow.phases.errors import PhaseError, ReflectionError

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"

run = partial(in_process.run, "unified_flow")


def _everything_written(home: Path, *, journals: bool) -> bytes:
    """All that left the turn; the journal is private state and may be left out."""
    found = [path for path in home.rglob("*") if path.is_file()]
    private = ("turns", "sessions.sqlite3", "index")
    shown = [p for p in found if journals or not any(part in str(p) for part in private)]
    return b"".join(path.read_bytes() for path in shown)


def test_a_secret_that_a_model_said_leaves_the_turn_nowhere(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    leaky = PROCEED.model_copy(update={"reasoning": f"the key is {SECRET}"})
    model_server.script = script(reflection=leaky, synthesis=status(500, f"key {SECRET}"))
    served = ("--model", "m", "--base-url", model_server.url)
    done = run("ask", QUESTION, "--docs", docs, *served, "--json", home=home)
    assert json.loads(done.stdout)["partial"]["reflection"]["decision"] == "PROCEED"
    shown = done.stdout + done.stderr
    show = ["turns", "show", "1"]
    for command in (show, [*show, "--full"], [*show, "--json"], ["turns", "list"]):
        shown += run(*command, home=home).stdout
    assert SECRET not in shown
    assert SECRET.encode() not in _everything_written(home, journals=False)


def test_a_secret_in_a_question_or_an_answer_is_not_shown(home: Path, docs: Path) -> None:
    (docs / "keys.md").write_text(f"# Keys\n\nThe staging key of the gizmo is {SECRET} for now.\n")
    done = run("ask", "What is the staging key of the gizmo?", "--docs", docs, home=home)
    assert "staging key" in done.stdout
    assert SECRET not in done.stdout
    run("ask", f"my key is {SECRET}, what is a topic?", "--docs", docs, home=home)
    assert SECRET not in run("turns", "list", home=home).stdout


def test_what_documents_say_is_redacted_only_for_others(home: Path, docs: Path) -> None:
    said = "password=swordfish99 at postgresql://scott:tiger@localhost/gizmo"
    (docs / "client.md").write_text(f"# Client\n\nThe frobnicator logs in with {said}.\n")
    asked = ("ask", "How does the frobnicator log in?", "--docs", docs, "--session", "s")
    assert said in run(*asked, home=home).stdout
    outcome = json.loads(run(*asked, "--json", home=home).stdout)
    assert said in outcome["response"]
    assert said in outcome["citations"][0]["quote"]
    assert said in run("sessions", "show", "s", home=home).stdout
    assert said in run("sessions", "show", "s", "--json", home=home).stdout
    for others in (["sessions", "export", "s"], ["turns", "show", "1", "--full"]):
        for form in ([], ["--json"]):
            shown = run(*others, *form, home=home).stdout
            assert "frobnicator" in shown
            assert "swordfish99" not in shown
            assert "tiger" not in shown


def test_partial_results_are_redacted_for_a_service_too(home: Path, docs: Path) -> None:
    leaky = PROCEED.model_copy(update={"reasoning": f"the key is {SECRET}"})
    flow = scripted_flow(home, docs, reflection=leaky, synthesis=RuntimeError("x"))
    reply = asyncio.run(flow.process_request("s", QUESTION))
    assert "reflection" in reply["partial"]
    assert SECRET not in json.dumps(reply)


def test_a_server_that_repeats_the_key_spreads_it_nowhere(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "Zk9plainkey123456"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    async def ask(url: str) -> None:
        async with served_flow(home, url, docs) as flow:
            with pytest.raises(ReflectionError) as raised:
                await flow.process("s", QUESTION)
            assert key not in str(raised.value)

    with ModelServer(script(reflection=answer(f"your key is {key} ok")), api_key=key) as server:
        asyncio.run(ask(server.url))
    assert key.encode() not in _everything_written(home, journals=True)


def _append(line: bytes) -> Any:
    def damage(journal: Path) -> None:
        journal.write_bytes(journal.read_bytes() + line + b"\n")

    return damage


def _replace_by_folder(journal: Path) -> None:
    journal.unlink()
    journal.mkdir()


DAMAGE = {
    "a number": _append(b"5"),
    "a list": _append(b"[1]"),
    "another event": _append(b'{"event":"nonsense"}'),
    "an output of another shape": _append(
        b'{"at":"2026-01-01T00:00:00Z","event":"phase_completed","phase":"planner","visit":9,'
        b'"output":{"a":1},"duration_ms":1}'
    ),
    "no name of a file": _append(b'{"event":"turn_abandoned","by":{"$file":5},"reason":"r"}'),
    "nested too deeply": _append(b"[" * 100_000),
    "a name that is a path": _append(
        b'{"event":"turn_abandoned","by":{"$file":"../../x"},"reason":""}'
    ),
    "an unknown phase": _append(
        b'{"at":"2026-01-01T00:00:00Z","event":"phase_completed","phase":"x","visit":9,'
        b'"output":{"a":1},"duration_ms":1}'
    ),
    "a folder": _replace_by_folder,
    "empty": lambda journal: journal.write_bytes(b""),
    "no first line": lambda journal: journal.write_bytes(journal.read_bytes().split(b"\n", 1)[1]),
    "gone": lambda journal: journal.unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_one_damaged_journal_hides_no_other_turn(kind: str, home: Path, docs: Path) -> None:
    for _ in range(2):
        asyncio.run(scripted_flow(home, docs).process("s", QUESTION))
    DAMAGE[kind](home / "shared_state/turns/turn_000001/journal.jsonl")
    (home / "shared_state/turns/turn_99999999999999999999999").mkdir()
    (home / "shared_state/turns/turn_000007").write_text("a file")
    listed = run("turns", "list", "--json", home=home)
    assert listed.returncode == 0, listed.stderr
    assert 2 in [turn["turn_id"] for turn in json.loads(listed.stdout)["turns"]]
    shown = run("turns", "show", "1", "--full", home=home)
    assert "Traceback" not in shown.stderr
    assert shown.returncode in (1, 3)
    for command in (["resume", "1"], ["replay", "1"]):
        done = run(*command, home=home)
        assert "Traceback" not in done.stderr
        assert done.returncode in (1, 2, 3)
    if kind not in ("gone", "empty"):
        assert "turn_000001" in listed.stderr + listed.stdout, "it is damaged, and not hidden"
    assert run("turns", "show", "9" * 5000, home=home).returncode == 3
    assert run("resume", "9" * 5000, home=home).returncode == 3
    third = asyncio.run(scripted_flow(home, docs).process("s", QUESTION))
    assert third.turn_id == 8


@pytest.mark.parametrize("question", [None, 5, b"bytes", ["list"]])
def test_a_question_that_is_no_text_is_the_caller_s_mistake(question: Any, home: Path) -> None:
    flow = scripted_flow(home)
    with pytest.raises(InputError):
        asyncio.run(flow.process("s", question))
    reply = asyncio.run(flow.process_request("s", question))
    assert (reply["error_type"], reply["intervention_id"]) == ("ValidationError", None)


@pytest.mark.parametrize(
    "given", [{"session_id": None}, {"user_id": 5}, {"request_id": 5}, {"channel": 5}]
)
def test_a_parameter_of_another_type_is_too(given: dict[str, Any], home: Path) -> None:
    arguments = {"session_id": "s", "message": QUESTION} | given
    reply = asyncio.run(scripted_flow(home).process_request(**arguments))
    assert reply["error_type"] == "ValidationError"
    assert open_entries(home) == []
    assert not (home / "shared_state" / "turns").exists()


def _fifo(recipe: Path) -> None:
    os.mkfifo(recipe)


def _dangling(recipe: Path) -> None:
    recipe.symlink_to("nowhere")


@pytest.mark.parametrize("make", [_fifo, _dangling])
def test_a_recipe_that_is_no_file_is_a_config_error(make: Any, home: Path, docs: Path) -> None:
    (home / "recipes").mkdir()
    make(home / "recipes" / "planner.md")
    with pytest.raises(PhaseError) as raised:
        asyncio.run(scripted_flow(home, docs).process("s", QUESTION))
    assert (raised.value.phase, raised.value.category) == ("planner", "config_error")


def test_a_recipes_folder_that_is_named_and_not_there_is_no_reason_to_use_others(
    home: Path, docs: Path
) -> None:
    (home / "unified_flow.toml").write_text('recipes = "nowhere"\n')
    with pytest.raises(PhaseError, match="no such folder of recipes"):
        asyncio.run(scripted_flow(home, docs).process("s", QUESTION))


def test_output_that_cannot_be_written_is_one_line(home: Path, docs: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = forked.run(
            [
                *(sys.executable, "-m", "unified_flow", "ask", "What are topics for?"),
                *("--docs", str(docs), "--home", str(home)),
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_a_long_answer_is_not_cut(home: Path, docs: Path) -> None:
    long = NOTHING_CLAIMED.model_copy(update={"response": "word " * 20_000})
    reply = asyncio.run(scripted_flow(home, docs, synthesis=long).process_request("s", QUESTION))
    assert reply["response"] == long.response
