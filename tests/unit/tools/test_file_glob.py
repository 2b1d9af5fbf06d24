from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.tools.running import run
from unified_flow.errors import ToolArgumentError
from unified_flow.tools.builtin.file_search import checked_glob, file_tools, glob_matches
from unified_flow.tools.toolbox import Toolbox


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    docs = tmp_path / "docs"
    for name in ("a.md", "deep/b.md", "deep/c.py", "build/d.md", ".git/e.md"):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text("text")
    (docs / ".gitignore").write_text("build/\n")
    (tmp_path / "secret.md").write_text("secret")
    (docs / "out.md").symlink_to(tmp_path / "secret.md")
    return Toolbox(file_tools([docs]))


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.md", ["docs/a.md", "docs/deep/b.md"]),
        ("docs/*.md", ["docs/a.md"]),
        ("deep/*", ["docs/deep/b.md", "docs/deep/c.py"]),
        ("docs/deep/", ["docs/deep/b.md", "docs/deep/c.py"]),
        ("*.rst", []),
    ],
)
def test_files_by_pattern_without_what_git_ignores(
    box: Toolbox, pattern: str, files: list[str]
) -> None:
    found = run(box, "file.glob", pattern=pattern)
    assert found.result["files"] == files
    assert [claim.source for claim in found.claims] == [f"{file}:1" for file in files]


def test_a_link_that_leads_out_is_left_out_aloud(box: Toolbox) -> None:
    assert run(box, "file.glob", pattern="**").result["skipped"] == {
        "link that leads out of the folder": 1
    }


def test_the_limit_says_what_it_hides(box: Toolbox) -> None:
    found = run(box, "file.glob", pattern="*.md", limit=1)
    assert found.result["files"] == ["docs/a.md"]
    assert (found.result["total"], found.result["truncated"]) == (2, True)


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "", "x" * 501])
def test_a_bad_pattern_is_an_argument_error(box: Toolbox, pattern: str) -> None:
    with pytest.raises(ToolArgumentError, match="argument pattern"):
        run(box, "file.glob", pattern=pattern)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.md", "a.md", True),
        ("*.md", "docs/deep/a.md", True),
        ("*.md", "a.mdx", False),
        ("a.md", "docs/a.md", True),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/deep/a.md", False),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/x/y/a.md", True),
        ("docs/**/*.md", "other/a.md", False),
        ("**/*.md", "a.md", True),
        ("**", "a.md", True),
        ("**", "x/y/a.md", True),
        ("docs/**", "docs/x/a.md", True),
        ("docs/**", "docs", False),
        ("docs/", "docs/x/a.md", True),
        ("./docs/a.md", "docs/a.md", True),
        ("**/x/**/a.md", "x/a.md", True),
        ("**/x/**/a.md", "w/x/y/z/a.md", True),
        ("**/x/**/a.md", "w/y/z/a.md", False),
        ("**/**/a.md", "a.md", True),
        ("[ab].m?", "b.md", True),
        ("[!ab].md", "b.md", False),
        ("A.md", "a.md", False),
        ("*å*", "docs/blå.md", True),
    ],
)
def test_what_a_pattern_matches(pattern: str, path: str, matches: bool) -> None:
    assert glob_matches(pattern, path) is matches


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../../b", " ", "a\0b"])
def test_a_pattern_stays_inside(pattern: str) -> None:
    with pytest.raises(ValueError, match="a pattern is"):
        checked_glob(pattern)


def test_no_pattern_takes_for_ever() -> None:
    assert not glob_matches("*a" * 100 + "b", "a" * 250)
    assert not glob_matches("**/" * 100 + "b", "a/" * 200 + "a")
