"""A sitting as a newcomer would have it: mixed files, a tool of an MCP server that asks for leave,
a model server that fails in the middle and is mended, ten questions at a real terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from interventions import InterventionQueue
from tests import forked
from tests.answers import script
from tests.office import write_pdf, write_slides, write_word, write_workbook
from tests.servers import mcp_server
from tests.servers.model_server import ModelServer, status
from unified_flow.turns.results import Citation, Draft

FLOW = [sys.executable, "-m", "unified_flow"]


@pytest.fixture
def project(home: Path) -> Path:
    docs = home / "docs"
    docs.mkdir()
    lamp = ["The Aurora lamp uses 40 watts and weighs 2 kg."]
    warranty = ["The warranty of the Aurora lamp lasts five years."]
    write_pdf(docs / "lamp.pdf", [lamp, warranty])
    write_word(docs / "rover.docx")
    write_workbook(docs / "prices.xlsx")
    write_slides(docs / "talk.pptx")
    (docs / "robots.md").write_text(
        "# Robots\n\nA topic is a named bus over which nodes exchange messages.\n\n"
        "A service is a call from one node to another, with an answer.\n"
    )
    (docs / "shop.html").write_text("<h1>Shop</h1><p>The shop in Lund opens at nine o'clock.</p>")
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    return home


@pytest.fixture
def failing_once() -> Iterator[ModelServer]:
    """The voice of the flow. The one answer that it gives comes after a failure."""
    quote = "The shop in Lund opens at nine o'clock."
    draft = Draft(
        response="The shop in Lund opens at nine o'clock.",
        citations=[Citation(source="docs/shop.html:1", quote=quote, score=0.9)],
    )
    with ModelServer(script(synthesis=[status(500), draft])) as server:
        yield server


def settings(home: Path, *, voice: ModelServer | None = None) -> None:
    """As the person edits them while the chat is open."""
    text = f'docs = ["docs"]\n[mcp.test]\ncommand = "{sys.executable}"\n'
    text += f'args = ["{mcp_server.__file__}"]\n'
    if voice is not None:
        text += f'[models.far]\nmodel = "m"\nbase_url = "{voice.url}"\n[roles]\nvoice = "far"\n'
    (home / "unified_flow.toml").write_text(text)


def test_ten_questions_with_a_failure_that_is_mended_and_resumed(
    project: Path, failing_once: ModelServer
) -> None:
    settings(project)
    env = os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1", "NO_COLOR": "1"}
    chat = pexpect.spawn(
        FLOW[0],
        [*FLOW[1:], "chat", "--session", "ten", "--home", str(project)],
        env=env,
        dimensions=(60, 160),
        timeout=40,
        encoding="utf-8",
    )
    chat.delaybeforesend = None  # it waits for what is expected

    def says(line: str, *expected: str) -> None:
        chat.sendline(line)
        for each in expected:
            chat.expect(each)

    chat.expect("/help lists")
    says("What does the Aurora lamp use?", r"docs/lamp\.pdf:p1", "40 watts")
    says("How long does its warranty last?", r"docs/lamp\.pdf:p2", "five years")
    says("How long does the battery of the rover last?", r"rover\.docx", "eleven hours")
    says("What is the price of a flange?", r"prices\.xlsx", r"12\.5")
    says("What does Apollo cost?", r"talk\.pptx", "nine crowns")
    says("What is 17% of 2300?", "391")
    # A tool of the server: asked for, refused, then allowed.
    says("use test.add a=20 b=22", r"\[n\]ot\?")
    says("n", "test.add was not allowed to run")
    says("use test.add a=20 b=22", r"\[n\]ot\?")
    says("s", "42")
    # The model that words the answers fails, is mended, and the same turn goes on.
    settings(project, voice=failing_once)
    says("/reload", "settings read again")
    says("When does the shop in Lund open?", "synthesis failed: llm_error", "/retry goes on")
    says("/retry the server is up again", "opens at nine", r"shop\.html", "resolved, verified")
    settings(project)
    says("/reload", "settings read again")
    says("Remember that I work with ROS 2.", "ROS 2")
    says("What is a topic?", r"robots\.md:3", "named bus")
    chat.sendline("/quit")  # Ctrl-D may come while no line is being edited
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0

    assert InterventionQueue(project).open_count() == 0
    shown = forked.run(
        [*FLOW, "sessions", "show", "ten", "--json", "--home", str(project)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(shown.stdout)
    assert len(told["exchanges"]) == 11, "a refusal is an answer, too"
    assert told["unanswered"] == []
