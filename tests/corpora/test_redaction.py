"""Whole documentations, as an answer may quote them: whoever asks reads what is written there."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from interventions.secrets.redaction import redact_for_asker, redact_text
from unified_flow import UnifiedFlow
from unified_flow.api.answer import answer_of
from unified_flow.cli.outcome import of_turn
from unified_flow.turns.passage import source_of
from unified_flow.turns.results import Citation
from unified_flow.turns.sources import citation_for_asker

pytestmark = pytest.mark.corpora

ISSUED = "ghp_" + "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
QUESTIONS = (
    "How is a password or a token given?",
    "Which URL connects to a database, a proxy or a server?",
    "What is the Authorization header?",
    "What is sent for authentication?",
)


def pages(documentation: Path) -> list[Path]:
    found = [
        path for path in sorted(documentation.rglob("*")) if path.suffix in {".md", ".rst", ".txt"}
    ]
    assert found
    return found


def test_every_line_is_shown_as_it_stands(documentation: Path) -> None:
    """And the rule for logs, which masks by name, leaves nearly all of them as they are."""
    by_name = lines = 0
    for page in pages(documentation):
        text = page.read_text()
        assert redact_for_asker(text) == text
        for line in text.splitlines():
            assert redact_for_asker(line) == line
            by_name += redact_text(line) != line
            lines += 1
    assert by_name < lines / 500


def test_every_place_is_shown_as_it_stands(documentation: Path) -> None:
    for page in pages(documentation):
        lines = page.read_text().splitlines()
        path = page.relative_to(documentation.parent).as_posix()
        for number, (heading, line) in enumerate(pairwise(lines), start=1):
            cited = Citation(
                source=source_of(path, number, None), quote=line, passage=line, heading=heading
            )
            assert citation_for_asker(cited) == cited


def test_an_issued_token_is_masked_and_nothing_beside_it(documentation: Path) -> None:
    for page in pages(documentation):
        text = page.read_text()
        planted = re.sub(r"(?<=\n)\n", f"\n{ISSUED}\n", text)
        assert redact_for_asker(planted) == planted.replace(ISSUED, "[redacted]")


def test_an_answer_masks_nothing(documentation: Path, home: Path) -> None:
    """Over the flow itself."""
    shown = asyncio.run(answers_shown(documentation, home))
    assert not any("[redacted]" in text for text in shown)
    assert any("quote" in text for text in shown)


async def answers_shown(documentation: Path, home: Path) -> list[str]:
    """As `ask --json`, the service and `process_request` give them."""
    shown = []
    async with UnifiedFlow.from_config(home, docs=[documentation]) as flow:
        for question in QUESTIONS:
            turn = await flow.process("s", question, persist=False)
            shown.append(json.dumps([of_turn(turn), answer_of(turn, "s", "en").model_dump()]))
            shown.append((await flow.process_request("s", question, persist=False))["response"])
    return shown
