"""Rows of cells for `row_list`, and how they are laid out in a width. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

GAP = 1


@dataclass(frozen=True)
class Column:
    """`size` is the most it takes, 0 for whatever is left; below `from_width` it is not shown."""

    title: str
    size: int
    least: int = 0
    right: bool = False
    from_width: int = 0


@dataclass(frozen=True)
class Cell:
    """Text that is safe to show; `badges` stand before it, each a word with its style."""

    text: str
    style: str = ""
    badges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Row:
    """`key` says what the row is, whatever its place; it has a cell for each column."""

    key: str
    cells: tuple[Cell, ...]


def layout(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[tuple[int, int]]:
    """(number of the column, its size) for each column that is shown."""
    shown = [number for number, column in enumerate(columns) if width >= column.from_width]
    sizes: dict[int, int] = {}
    for number in shown:
        column = columns[number]
        if column.size and column.least:
            needed = max((cell_len(row.cells[number].text) for row in rows), default=0)
            sizes[number] = min(max(needed, cell_len(column.title), column.least), column.size)
        else:
            sizes[number] = column.size
    room = width - GAP * (len(shown) - 1) - sum(sizes.values())
    # The column that takes the rest needs room to say anything: others give theirs up first.
    wanted = min(40, width * 21 // 50)
    for number in reversed(shown):
        spare = sizes[number] - (columns[number].least or sizes[number])
        given = min(max(wanted - room, 0), spare)
        sizes[number] -= given
        room += given
    return [(n, sizes[n] if columns[n].size else max(room, 4)) for n in shown]


def cut(text: str, size: int, *, right: bool = False) -> str:
    """Exactly `size` columns, with an ellipsis where something is missing."""
    length = cell_len(text)
    if length > size:
        return set_cell_size(set_cell_size(text, max(size - 1, 0)).rstrip() + "…", size)
    return " " * (size - length) + text if right else text + " " * (size - length)
