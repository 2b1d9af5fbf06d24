"""`resume --edit`: a person changes what the phase reads, and the journal keeps both versions."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import in_process
from tests.answers import (
    QUESTION,
    every_phase_by_model,
    journal_lines,
    open_entries,
    script,
    scripted_flow,
    started_phases,
)
from tests.servers.model_server import ModelServer, status
from unified_flow.errors.turns import NotResumableError
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ResumeRequest, ask_person, edits
from unified_flow.resume.lookup import load_turn
from unified_flow.resume.resumption import resume_turn

Ran = subprocess.CompletedProcess[str]


def cli(
    home: Path, *words: str | Path, editor: Path | None = None, module: str = "unified_flow"
) -> Ran:
    edit = None if editor is None else f"{sys.executable} {editor}"
    return in_process.run(module, *words, home=home, VISUAL=None, EDITOR=edit)


@pytest.fixture
def failed(home: Path, docs: Path, model_server: ModelServer) -> None:
    model_server.script = script(synthesis=status(500))
    served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
    assert cli(home, "ask", QUESTION, *served).returncode == 1
    model_server.script = script()


def editor(folder: Path, body: str) -> Path:
    path = folder / "editor.py"
    path.write_text(
        "import json, sys, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "data = json.loads(file.read_text())\n"
        f"{body}\n"
        "file.write_text(json.dumps(data))\n"
    )
    return path


@every_phase_by_model
@pytest.mark.usefixtures("failed")
def test_the_phase_reads_what_was_edited(
    home: Path, model_server: ModelServer, tmp_path: Path
) -> None:
    ask_person = len(model_server.requests)
    change = editor(
        tmp_path,
        "data['question'] = 'What is a named bus?'\n"
        "data['coordinator'][0]['claims'][0]['claim'] = 'A claim put right by hand.'",
    )
    done = cli(home, "resume", "1", "--edit", editor=change)
    assert done.returncode == 0, done.stderr
    assert "edited: question, coordinator" in done.stderr
    synthesis = model_server.requests[ask_person].text
    assert "What is a named bus?" in synthesis
    assert "A claim put right by hand." in synthesis
    lines = journal_lines(home)
    (resumed,) = [line for line in lines if line["event"] == "turn_resumed"]
    assert resumed["edited"]["question"] == "What is a named bus?"
    assert lines[0]["question"] == QUESTION
    replayed = cli(home, "replay", "1")
    assert replayed.returncode == 0, replayed.stdout
    assert "! " not in replayed.stdout
    assert "prompts that changed" not in replayed.stderr, (
        "it is asked what it was asked after the edit"
    )


@every_phase_by_model
@pytest.mark.usefixtures("failed")
def test_retry_edits_too(home: Path, model_server: ModelServer, tmp_path: Path) -> None:
    (entry,) = open_entries(home)
    ask_person = len(model_server.requests)
    change = editor(tmp_path, "data['question'] = 'What is a named bus?'")
    words = ("retry", entry["id"], "--edit", "--from", "planner", "-m", "put right")
    done = cli(home, *words, editor=change, module="interventions")
    assert done.returncode == 0, done.stderr
    assert model_server.phases[ask_person] == "planner"
    assert "What is a named bus?" in model_server.requests[ask_person].text
    assert open_entries(home)[0]["resolution"] == "put right"
    every = cli(home, "retry", entry["id"], "--all", "--edit", module="interventions")
    assert every.returncode == 2


WRONG = {
    "no JSON": "file.write_text('{'); sys.exit(0)",
    "a section less": "del data['query_analyzer']",
    "an empty question": "data['question'] = ' '",
    "a misfit": "data['query_analyzer'] = {'query_type': 'MAYBE'}",
    "the editor fails": "sys.exit(3)",
    "no UTF-8": "file.write_bytes(b'\\xff'); sys.exit(0)",
    "too deep": "file.write_text('[' * 100_000); sys.exit(0)",
}


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_used_changes_nothing(
    what: str, home: Path, model_server: ModelServer, tmp_path: Path
) -> None:
    before, ask_person = journal_lines(home), len(model_server.requests)
    done = cli(home, "resume", "1", "--edit", editor=editor(tmp_path, WRONG[what]))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    if what != "the editor fails":
        (kept,) = re.findall(r"what you wrote is kept in (\S+)", done.stderr)
        assert Path(kept).stat().st_mode & 0o777 == 0o600
        assert Path(kept).name == "synthesis.json"
        shutil.rmtree(Path(kept).parent)
    assert journal_lines(home) == before
    assert len(model_server.requests) == ask_person


@pytest.mark.usefixtures("failed")
def test_without_terminal_and_editor_it_is_refused(home: Path) -> None:
    done = cli(home, "resume", "1", "--edit")
    assert done.returncode == 2
    assert "needs a terminal, or $EDITOR" in done.stderr


@pytest.mark.parametrize("question", ["null", "5", '["list"]'])
def test_a_question_that_is_no_text_is_refused(question: str) -> None:
    with pytest.raises(NotResumableError, match="question cannot be used"):
        edits({"question": "a"}, f'{{"question": {question}}}')


@pytest.mark.usefixtures("failed")
def test_an_editor_that_cannot_be_named_is_told(home: Path) -> None:
    editor = {"VISUAL": None, "EDITOR": "'unclosed"}
    done = in_process.run("unified_flow", "resume", "1", "--edit", home=home, **editor)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "the editor cannot be started" in done.stderr


@pytest.mark.usefixtures("failed")
def test_an_edit_without_a_change_stops_the_retry(home: Path, tmp_path: Path) -> None:
    same = tmp_path / "editor.py"
    same.write_text("")
    before = started_phases(home)
    done = cli(home, "resume", "1", "--edit", editor=same)
    assert done.returncode == 2, done.stderr
    assert "nothing was edited" in done.stderr
    assert started_phases(home) == before


def test_what_was_edited_is_what_the_phase_would_have_read(home: Path, docs: Path) -> None:
    """Somebody else goes back meanwhile, and the turn stops at the same phase once more."""
    down = {"synthesis": RuntimeError("down")}
    broken = scripted_flow(home, docs, **down)
    with pytest.raises(PhaseError):
        asyncio.run(broken.process("s", QUESTION))

    def edit(name: str, text: str) -> str:
        other = ResumeRequest(from_phase="planner", edited={"question": "What is a named bus?"})
        asyncio.run(resume_turn(scripted_flow(home, docs, **down), 1, other))
        return text.replace(QUESTION, "What is a topic, briefly?")

    flow = scripted_flow(home, docs)
    wanted = ask_person(ResumeRequest(), load_turn(home, 1), flow.services, ask=None, edit=edit)
    before = started_phases(home)
    with pytest.raises(NotResumableError, match="is not what you saw"):
        asyncio.run(resume_turn(flow, 1, wanted))
    assert started_phases(home) == before
