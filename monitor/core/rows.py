"""Rows of cells for `row_list`: how they are laid out in a space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

GAP = 1
_BROAD = 40


@dataclass(frozen=True)
class Column:
    """`size` is the most it takes, 0 for whatever is left; below `from_width` it is not shown. With
    `least` it takes what its cells need, nothing if all are empty, and gives up to that much. A
    click on the title runs `action`, one of the screen."""

    title: str
    size: int
    least: int = 0
    right: bool = False
    from_width: int = 0
    action: str = ""


class Cell(NamedTuple):
    """Text that is safe to show; before it `badges`, each a word with its style."""

    text: str
    style: str = ""
    badges: tuple[tuple[str, str], ...] = ()

    @property
    def badges_length(self) -> int:
        return sum(cell_len(word) + GAP for word, _ in self.badges)


@dataclass(frozen=True)
class Row:
    """`key` says what the row is, whatever its place; it has a cell for each column."""

    key: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Layout:
    """`columns`: (number of the column, its size) for each that is shown. `texts`: for each row the
    lines of the column that takes the rest, of which the first stands among the other cells.
    `tops`: the first line of each row, and last how many lines there are. Lines after the first
    begin at `indent`."""

    columns: Sequence[tuple[int, int]] = ()
    texts: Sequence[Sequence[str]] = ()
    tops: Sequence[int] = (0,)
    indent: int = 0


def layout(columns: Sequence[Column], rows: Sequence[Row], width: int, height: int) -> Layout:
    """A line for each row; where lines would stand empty, more of them for what would be cut: for
    all rows alike if their columns need that, then for long texts, from the first row on."""
    needed = {number: _needed(columns[number], number, rows) for number in range(len(columns))}
    shown = [n for n, one in enumerate(columns) if width >= one.from_width and needed[n] >= 0]
    rest = next(number for number in shown if not columns[number].size)
    free = width - GAP * (len(shown) - 1)
    sizes = {number: needed[number] for number in shown}
    room = free - sum(sizes.values())
    # The column that takes the rest needs room to say anything: others give theirs up first.
    texts_of_rest = [row.cells[rest] for row in rows]
    longest = max((one.badges_length + cell_len(one.text) for one in texts_of_rest), default=0)
    wanted = min(_BROAD, width * 21 // 50, longest)
    below = room < wanted and 0 < 2 * len(rows) <= height
    if below:  # its text has a line of its own; only badges stand among the other cells
        wanted = max(one.badges_length for one in texts_of_rest)
    for number in reversed(shown):
        spare = max(sizes[number] - (columns[number].least or sizes[number]), 0)
        given_up = min(max(wanted - room, 0), spare)
        sizes[number] -= given_up
        room += given_up
    sizes[rest] = max(room, 4)
    laid_out = [(number, sizes[number]) for number in shown]
    # It goes on below itself, or below the first text, which takes what its cells need.
    first_text = next(n for n in shown if n == rest or (columns[n].least and not columns[n].right))
    before = takewhile(lambda n: n != (first_text if below else rest), shown)
    indent = sum(sizes[number] + GAP for number in before)
    texts = [[row.cells[rest].text] for row in rows]
    spare = height - len(rows) * (1 + below)
    for place, row in enumerate(rows if spare >= 0 else ()):
        cell = row.cells[rest]
        first = 0 if below else sizes[rest] - cell.badges_length
        texts[place] = _lines(cell.text, first, width - indent, 1 + below + spare)
        spare -= len(texts[place]) - 1 - below
    tops = tuple(accumulate(map(len, texts), initial=0))
    return Layout(laid_out, texts, tops, indent)


def _needed(column: Column, number: int, rows: Sequence[Row]) -> int:
    """-1 for a column that has nothing to show."""
    if not (column.size and column.least):
        return column.size
    most = max((cell_len(row.cells[number].text) for row in rows), default=0)
    return min(max(most, cell_len(column.title)), column.size) if most else -1


def _lines(text: str, first: int, width: int, most: int) -> list[str]:
    """Broken between words where possible; the last may be too long."""
    lines: list[str] = []
    room = first
    while len(lines) < most - 1 and (cell_len(text) > room):
        head = chop_cells(text, room)[0] if room > 0 else ""
        space = head.rfind(" ")
        if text[len(head)] != " " and space > 0:
            head = head[:space]
        lines.append(head)
        text, room = text[len(head) :].lstrip(), width
    return [*lines, text]


def short_number(number: int) -> str:
    """Four characters at most, up to a thousand million: 9999, 12k, 3M."""
    if number >= 10**6:
        return f"{number // 10**6}M"
    return f"{number // 1000}k" if number >= 10**4 else str(number)
