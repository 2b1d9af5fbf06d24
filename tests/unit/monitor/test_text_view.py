"""Lines that are too long are broken so that code stays in its column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from monitor.widgets.text_view import wrapped


def _plain(text: str, width: int) -> list[str]:
    return [
        line.plain.rstrip() for line in wrapped(Content(text).split("\n", allow_blank=True), width)
    ]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("short\n\nlines", 10, ["short", "", "lines"]),
        ("words that go on", 10, ["words that", "go on"]),
        ("    indented words go on", 20, ["    indented words", "      go on"]),
        (
            "  >    41 |     return Plan(**json.loads(body), strict=True)",
            48,
            ["  >    41 |     return Plan(**json.loads(body),", "          |     strict=True)"],
        ),
        (
            '  File "tools/plan.py", line 41, in read_plan',
            30,
            ['  File "tools/plan.py", line', "      41, in read_plan"],
        ),
    ],
)
def test_what_goes_on_is_indented(text: str, width: int, lines: list[str]) -> None:
    assert _plain(text, width) == lines


@given(st.text(alphabet="ab >|4\t\n漢", max_size=80), st.integers(8, 60))
def test_nothing_is_lost_and_nothing_is_too_wide(text: str, width: int) -> None:
    lines = wrapped(Content(text).split("\n", allow_blank=True), width)
    assert all(line.rstrip().cell_length <= width for line in lines)
    letters = [letter for letter in text if letter in "ab4>漢"]
    assert [letter for line in lines for letter in line.plain if letter in "ab4>漢"] == letters
