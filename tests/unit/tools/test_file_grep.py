from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.tools.running import run
from unified_flow.errors import ToolArgumentError, ToolTimeoutError
from unified_flow.tools.builtin.file_search import file_grep, file_tools
from unified_flow.tools.builtin.roots import Roots
from unified_flow.tools.toolbox import Toolbox


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "deep").mkdir(parents=True)
    (root / "a.md").write_text("The queue.\nNothing.\n  A second Queue.\n")
    (root / "deep" / "b.py").write_text("queue = []\n")
    (root / "image.png").write_bytes(b"\x89PNG\x00queue")
    (tmp_path / "secret.txt").write_text("queue of secrets")
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    return root


@pytest.fixture
def box(docs: Path) -> Toolbox:
    return Toolbox(file_tools([docs]))


def test_lines_with_their_places(box: Toolbox) -> None:
    found = run(box, "file.grep", pattern="queue")
    assert found.result["matches"] == [
        {"path": "docs/a.md", "line": 1, "text": "The queue."},
        {"path": "docs/deep/b.py", "line": 1, "text": "queue = []"},
    ]
    assert (found.result["files_searched"], found.result["truncated"]) == (2, False)
    assert found.result["skipped"] == {
        "link that leads out of the folder": 1,
        "not text, too large, or gone": 1,
    }
    assert [claim.source for claim in found.claims] == ["docs/a.md:1", "docs/deep/b.py:1"]


def test_case_and_files_can_be_chosen(box: Toolbox) -> None:
    found = run(box, "file.grep", pattern="QUEUE", ignore_case=True, files="*.md")
    assert [(m["line"], m["text"]) for m in found.result["matches"]] == [
        (1, "The queue."), (3, "  A second Queue."),
    ]  # fmt: skip
    assert found.claims[1].claim == "A second Queue."


@pytest.mark.parametrize("pattern", ["^queue", r"queue\s=", "[q]ueue = .*$", "(?i)QUEUE ="])
def test_it_is_a_regular_expression(box: Toolbox, pattern: str) -> None:
    found = run(box, "file.grep", pattern=pattern)
    assert [m["path"] for m in found.result["matches"]] == ["docs/deep/b.py"]


def test_nothing_found_is_a_result(box: Toolbox) -> None:
    found = run(box, "file.grep", pattern="unicorn")
    assert (found.result["matches"], found.claims) == ([], [])


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a{2,1}", "(?P<n>a)(?P<n>b)", "\\", ""])
def test_a_bad_expression_is_an_argument_error(box: Toolbox, pattern: str) -> None:
    with pytest.raises(ToolArgumentError, match="argument pattern"):
        run(box, "file.grep", pattern=pattern)
    with pytest.raises(ToolArgumentError, match="argument files"):
        run(box, "file.grep", pattern="a", files="../*")


def test_text_beyond_ascii(box: Toolbox, docs: Path) -> None:
    (docs / "sv.txt").write_bytes("Kön är lång.\n".encode("cp1252"))
    (docs / "zh.txt").write_text("队列在这里。\n", encoding="utf-8")
    assert run(box, "file.grep", pattern="är l").claims[0].claim == "Kön är lång."
    assert run(box, "file.grep", pattern="队.").claims[0].source == "docs/zh.txt:1"


def test_the_limit_ends_the_search_early(box: Toolbox, docs: Path) -> None:
    for n in range(30):
        (docs / f"many{n:02}.txt").write_text("hit\n" * 40_000)
    found = run(box, "file.grep", pattern="hit", limit=7)
    assert len(found.claims) == 7
    assert found.result["truncated"] is True
    assert found.result["files_searched"] <= 2


def test_a_long_line_is_shown_around_the_match(box: Toolbox, docs: Path) -> None:
    (docs / "min.js").write_text("x" * 5000 + "needle" + "y" * 100_000)
    [match] = run(box, "file.grep", pattern="needle").result["matches"]
    assert "needle" in match["text"]
    assert len(match["text"]) <= 500


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*b"])
def test_no_pattern_takes_for_ever(box: Toolbox, docs: Path, pattern: str) -> None:
    (docs / "evil.txt").write_text("a" * 19_000 + "!\n")
    assert run(box, "file.grep", pattern=pattern, files="evil.txt").claims == []


@pytest.mark.parametrize("pattern", ["(?=a)a", r"(a)\1"])
def test_what_would_need_backtracking_is_refused(box: Toolbox, pattern: str) -> None:
    with pytest.raises(ToolArgumentError, match="not supported"):
        run(box, "file.grep", pattern=pattern)


def test_a_search_has_an_end(docs: Path) -> None:
    box = Toolbox([file_grep(Roots([docs]), timeout_s=0.0)])
    with pytest.raises(ToolTimeoutError, match="did not end in time"):
        run(box, "file.grep", pattern="queue")
