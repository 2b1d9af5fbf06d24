"""The pages name only what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("architecture/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("docs/*.md"),
    ]
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
NAMED = re.compile(r"`((?:unified_flow|interventions|monitor|tests|benchmarks)/[\w./-]+\.\w+)`")
OWN = re.compile(r"`((?:phases|models|policies|retrieval|cli|recipes)/[\w./-]+\.\w+)`")


def anchors(page: Path) -> set[str]:
    """What GitHub makes of its headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def leads(page: Path, link: str, anchor: str) -> bool:
    target = page.parent / link if link else page
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_every_named_file_is_there(page: Path) -> None:
    text = page.read_text()
    missing = [
        f"{link}#{anchor}" for link, anchor in LINK.findall(text) if not leads(page, link, anchor)
    ]
    missing += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    missing += [name for name in OWN.findall(text) if not (ROOT / "unified_flow" / name).exists()]
    assert missing == []


def test_every_benchmark_is_in_their_table() -> None:
    page = (ROOT / "benchmarks/README.md").read_text()
    scripts = [path.name for path in ROOT.glob("benchmarks/*.py")]
    assert [name for name in scripts if f"benchmarks/{name}" not in page] == []
