"""Rows of cells as lines that can be understood alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_CELL = 2_000


def table_lines(rows: Iterable[list[str]]) -> Iterator[str]:
    """A line a row, empty for an empty row.

    Where the first row reads like names of columns, each cell below carries its name, because a
    search returns rows without the top of their table.
    """
    names: list[str] | None = None
    for row in rows:
        cells = [" ".join(cell.split())[:MAX_CELL] for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            yield ""
        elif names is None:
            names = cells if _are_names(cells) else []
            yield " | ".join(cells)
        else:
            yield " | ".join(_named(names, place, cell) for place, cell in enumerate(cells) if cell)


def _are_names(cells: list[str]) -> bool:
    texts = [cell for cell in cells if cell]
    return (
        len(texts) > 1
        and len(set(texts)) == len(texts)
        and all(len(text) <= 60 and not text[0].isdigit() for text in texts)
    )


def _named(names: list[str], place: int, cell: str) -> str:
    return f"{names[place]}: {cell}" if place < len(names) and names[place] else cell
