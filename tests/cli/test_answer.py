"""An answer as a person sees it: headings, passages, the sentence marked, places to click."""

from __future__ import annotations

from pathlib import Path

import pytest

from unified_flow.cli import answer
from unified_flow.config.tool_names import DOC_SEARCH
from unified_flow.turns.passage import Passage, title_of
from unified_flow.turns.results import Citation, Draft, ToolResult
from unified_flow.turns.sections import Sections
from unified_flow.turns.turn import Turn

PASSAGE = """A robot has joints and a long description that goes on beyond the edge of a narrow
terminal. Turn it on first:

1. Press the button.
2. Wait.

```
robot start

robot wave
```"""
CITED = Citation(
    source="docs/robots.md:5",
    quote="Turn it on first:",
    passage=PASSAGE,
    heading="Robots > Starting",
    score=0.7,
)
RESPONSE = f"{title_of(CITED.heading, CITED.source)}\n\n{PASSAGE}"


def answered(response: str, *citations: Citation) -> Turn:
    draft = Draft(response=response, citations=list(citations))
    return Turn(status="answered", sections=Sections(synthesis=draft))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "on_terminal", lambda: True)
    monkeypatch.setattr("unified_flow.cli.terminal.on_terminal", lambda: True)
    monkeypatch.setattr("interventions.cli.terminal.coloured", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")


@pytest.mark.usefixtures("terminal")
def test_a_passage_is_laid_out_with_its_sentence_marked(capsys: pytest.CaptureFixture[str]) -> None:
    answer.show_answer(answered(RESPONSE, CITED))
    shown = capsys.readouterr().out
    assert "\x1b[1mRobots > Starting\x1b[0m\n" in shown
    assert "\x1b[1mTurn it on first:\x1b[0m" in shown
    assert "\n1. Press the button.\n2. Wait.\n\n    robot start\n\n    robot wave\n" in shown
    assert "```" not in shown
    assert max(map(len, shown.splitlines())) < 80


def test_a_pipe_gets_the_passage_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    answer.show_answer(answered(RESPONSE, CITED))
    assert capsys.readouterr().out == f"{RESPONSE}\n\n"


def test_a_place_is_relative_to_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "project" / "docs"
    docs.mkdir(parents=True)
    (docs / "robots.md").touch()
    (tmp_path / "project" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "src")
    answer.show_answer(answered(RESPONSE, CITED), [docs])
    assert "Robots > Starting (../docs/robots.md:5)" in capsys.readouterr().out
    monkeypatch.chdir("/")
    assert answer.clickable("docs/robots.md:5", [docs]).endswith("project/docs/robots.md:5")
    assert answer.clickable("https://example.org/a#L3", [docs]) == "https://example.org/a#L3"


def test_only_places_of_unread_documents_are_rewritten_in_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "project" / "docs"
    docs.mkdir(parents=True)
    (docs / "scan.pdf").touch()
    (tmp_path / "project" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "src")
    unread = "docs/scan.pdf: 2 of 2 pages hold no text"
    result = {"query": "q", "passages": [], "unread": [unread]}
    search = ToolResult(tool=DOC_SEARCH, success=True, result=result)
    draft = Draft(response=f"- docs: what people read\n- {unread}")
    sections = Sections(coordinator=(search,), synthesis=draft)
    answer.show_answer(Turn(status="answered", sections=sections), [docs])
    assert capsys.readouterr().out.splitlines() == [
        "- docs: what people read",
        "- ../docs/scan.pdf: 2 of 2 pages hold no text",
    ]


def test_what_the_response_does_not_name_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    answer.show_answer(answered("Turn it on first.", CITED))
    shown = capsys.readouterr().out
    assert "Turn it on first.\n\nSources:\n  docs/robots.md:5  Robots > Starting\n" in shown


def test_sections_that_come_near_are_named_below_the_passages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    token = f"sk-proj-{'a1B2' * 12}"
    found = [
        ("Robots > Starting", 5, 0.7),
        (f"Stopping with {token}", 30, 0.6),
        ("Songs", 90, 0.3),
    ]
    passages = [
        Passage(
            chunk_id=str(line),
            path="docs/robots.md",
            line=line,
            end_line=line + 9,
            heading=heading,
            text="…",
            score=score,
        ).model_dump()
        for heading, line, score in found
    ]
    result = {"query": "q", "passages": passages}
    search = ToolResult(tool=DOC_SEARCH, success=True, result=result)
    draft = Draft(response=RESPONSE, citations=[CITED])
    sections = Sections(coordinator=(search,), synthesis=draft)
    answer.show_answer(Turn(status="answered", sections=sections))
    assert capsys.readouterr().out == (
        f"{RESPONSE}\n\nSee also:\n- Stopping with [redacted] (docs/robots.md:30)\n"
    )
