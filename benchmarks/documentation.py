"""How well the flow answers the questions that a documentation answers itself: its FAQ.

    python benchmarks/documentation.py FOLDER NAME=DOCS:PATTERN ... [--hide-headings] [--search]

FOLDER holds unpacked source distributions; DOCS is a project's documentation below it, PATTERN
the files of DOCS whose headings are asked, as in `scrapy=scrapy-*/docs:faq.rst`. Both are globs.
All of DOCS is indexed. Each heading that reads as a question is asked, and the section below it,
with those inside it, is the right one.

--hide-headings writes "Entry N" in place of each heading that is asked, so that the section has
to be found by what it says. --search searches only, without a turn. --set KEY=VALUE are settings
of the flow.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from unified_flow import PhaseError, UnifiedFlow
from unified_flow.retrieval.documents import open_documents
from unified_flow.retrieval.formats import markdown, restructured_text
from unified_flow.retrieval.formats.chunk import Heading
from unified_flow.turns.passage import Passage
from unified_flow.turns.sources import searches

READ = {".rst", ".txt", ".md", ".html"}
SHORTEST = 15  # words of a section that answers anything
_QUESTION = re.compile(
    r"^(how|what|why|when|where|who|which|can|could|is|are|am|do|does|did|should|will|would|may|i"
    r"|my)\b|\?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Asked:
    """A heading, and the lines of `path` that answer it (1-based, both included)."""

    question: str
    path: str
    first: int
    last: int

    def holds(self, path: str, line: int, end_line: int) -> bool:
        return path.endswith(self.path) and line <= self.last and end_line >= self.first


@dataclass(frozen=True)
class Outcome:
    """Whether the first quote, one of three, one of five or eight passages is from the right
    section."""

    first: bool = False
    three: bool = False
    five: bool = False
    eight: bool = False
    abstained: bool = False
    asked_back: bool = False
    failed: bool = False
    ms: float = 0.0


def prepared(source: Path, into: Path, pattern: str, *, hide: bool) -> list[Asked]:
    """Copies a documentation, and returns the questions that its headings ask."""
    shutil.copytree(source, into, ignore=shutil.ignore_patterns(".git", "locale"))
    for file in into.rglob("*"):
        if file.is_file() and file.suffix not in READ:
            file.unlink()
    asked: list[Asked] = []
    for file in sorted(into.glob(pattern)):
        lines = file.read_text(errors="replace").split("\n")
        module = markdown if file.suffix == ".md" else restructured_text
        headings = list(module.headings(list(lines)))
        asked += _questions(headings, lines, str(file.relative_to(into.parent)), hide)
        if hide:
            _hide(headings, lines)
            file.write_text("\n".join(lines))
    return asked


def _questions(headings: list[Heading], lines: list[str], path: str, hide: bool) -> Iterator[Asked]:
    for number, heading in enumerate(headings):
        below = (each.start for each in headings[number + 1 :] if each.level <= heading.level)
        end = next(below, len(lines))
        words = " ".join(lines[heading.end : end]).split()
        if _QUESTION.search(heading.title) and len(words) >= SHORTEST:
            yield Asked(heading.title, path, (heading.end if hide else heading.start) + 1, end)


def _hide(headings: Iterable[Heading], lines: list[str]) -> None:
    """The anchors right above go too: they say what the heading says."""
    for number, heading in enumerate(headings):
        if not _QUESTION.search(heading.title):
            continue
        at = heading.start
        while heading.end - at > 1 and not lines[at].strip(" =-~^\"'`#*+."):
            at += 1  # an overline
        marks = re.match(r"#+\s+", lines[at])
        lines[at] = f"{marks[0] if marks else ''}Entry {number:03d}".ljust(len(lines[at]), ".")
        for above in range(max(0, heading.start - 3), heading.start):
            if lines[above].startswith(".. _"):
                lines[above] = ""


def right_at(asked: Asked, places: Iterable[Passage]) -> list[bool]:
    return [asked.holds(each.path, each.line, each.end_line) for each in places]


def searched(folder: Path, home: Path, asked: list[Asked]) -> list[Outcome]:
    documents = open_documents(home, [folder])
    documents.ensure_fresh()
    outcomes = []
    for each in asked:
        began = time.perf_counter()
        found = documents.search(each.question)
        ms = (time.perf_counter() - began) * 1000
        right = right_at(each, found)
        within = (any(right[:most]) for most in (1, 3, 5, 8))
        outcomes.append(Outcome(*within, ms=ms))
    documents.close()
    return outcomes


async def answered(
    folder: Path, home: Path, asked: list[Asked], settings: dict[str, str]
) -> list[Outcome]:
    async with UnifiedFlow.from_config(home, docs=[folder], **settings) as flow:
        return [await _answer(flow, each) for each in asked]


async def _answer(flow: UnifiedFlow, asked: Asked) -> Outcome:
    began = time.perf_counter()
    try:
        turn = await flow.process("documentation", asked.question, persist=False)
    except PhaseError:
        return Outcome(failed=True)
    ms = (time.perf_counter() - began) * 1000
    places = (re.fullmatch(r"(.*):(\d+)", each.source) for each in turn.citations)
    quoted = [bool(at) and asked.holds(at[1], int(at[2]), int(at[2])) for at in places if at]
    found = [passage for _, passages, _ in searches(turn) for passage in passages]
    right = right_at(asked, found)
    return Outcome(
        first=any(quoted[:1]),
        three=any(quoted[:3]),
        five=any(right[:5]),
        eight=any(right[:8]),
        abstained=turn.abstained,
        asked_back=turn.status == "clarify",
        ms=ms,
    )


def show(name: str, outcomes: list[Outcome]) -> None:
    kept = ("first", "three", "five", "eight", "abstained", "asked_back", "failed")
    shares = [f"{fmean(getattr(each, key) for each in outcomes):.3f}" for key in kept]
    ms = median(each.ms for each in outcomes)
    print("  ".join([f"{name:12}", f"{len(outcomes):4}", *shares, f"{ms:6.1f}"]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("projects", nargs="+", metavar="NAME=DOCS:PATTERN")
    parser.add_argument("--hide-headings", action="store_true")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--limit", type=int, metavar="N", help="ask N questions of each project")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    settings = dict(each.split("=", 1) for each in given.set)
    print("project    asked  first  three  five   eight  abst.  back   failed  p50 ms")
    every: list[Outcome] = []
    for project in given.projects:
        name, _, place = project.partition("=")
        docs, _, pattern = place.rpartition(":")
        source = next(path for path in given.folder.glob(docs) if path.is_dir())
        with tempfile.TemporaryDirectory() as scratch:
            folder, home = Path(scratch, name), Path(scratch, "home")
            home.mkdir()
            asked = prepared(source, folder, pattern, hide=given.hide_headings)
            if given.limit:
                asked = asked[:: max(1, len(asked) // given.limit)][: given.limit]
            if given.search:
                outcomes = searched(folder, home, asked)
            else:
                outcomes = asyncio.run(answered(folder, home, asked, settings))
        show(name, outcomes)
        every += outcomes
    show("all", every)


if __name__ == "__main__":
    main()
