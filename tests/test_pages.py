"""README and architecture/ name only what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("architecture/**/*.md"), *ROOT.glob("benchmarks/*.md")]
)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
NAMED = re.compile(r"`((?:unified_flow|interventions|monitor|tests|benchmarks)/[\w./-]+\.\w+)`")
OWN = re.compile(r"`((?:phases|models|policies|retrieval|cli|recipes)/[\w./-]+\.\w+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_every_named_file_is_there(page: Path) -> None:
    text = page.read_text()
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    missing += [name for name in OWN.findall(text) if not (ROOT / "unified_flow" / name).exists()]
    assert missing == []
