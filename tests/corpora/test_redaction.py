"""Whole documentations, as an answer may quote them: whoever asks reads what is written there."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from interventions.secrets.redaction import redact_for_asker, redact_text
from unified_flow.turns.passage import citation_for_asker, source_of
from unified_flow.turns.results import Citation

pytestmark = pytest.mark.corpora

ISSUED = "ghp_" + "9f8e7d6c5b4a39281706f5e4d3c2b1a0"


def pages(documentation: Path) -> list[Path]:
    found = [
        path for path in sorted(documentation.rglob("*")) if path.suffix in {".md", ".rst", ".txt"}
    ]
    assert found
    return found


def test_every_line_is_shown_as_it_stands(documentation: Path) -> None:
    """And there are lines in each documentation that the rule for logs would mask."""
    by_name = 0
    for page in pages(documentation):
        text = page.read_text()
        assert redact_for_asker(text) == text
        for line in text.splitlines():
            assert redact_for_asker(line) == line
            by_name += redact_text(line) != line
    assert by_name


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
