from __future__ import annotations

import pytest

from unified_flow.tools.builtin.file_search import GlobPattern


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
    assert GlobPattern(pattern).matches(path) is matches


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../../b", " ", "a\0b"])
def test_a_pattern_stays_inside(pattern: str) -> None:
    with pytest.raises(ValueError, match="a pattern is"):
        GlobPattern(pattern)


def test_no_pattern_takes_for_ever() -> None:
    assert not GlobPattern("*a" * 100 + "b").matches("a" * 250)
    assert not GlobPattern("**/" * 100 + "b").matches("a/" * 200 + "a")
