"""Tables: rows that carry the names of their columns; CSV files, on the lines of the file."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from unified_flow.lib.sandbox import Section

if TYPE_CHECKING:
    from _csv import Reader

EXTENSIONS = frozenset({".csv", ".tsv"})
_HEAD = 20  # rows in which the names of the columns are looked for: titles and notes stand above
_SAMPLE = 64 * 1024  # characters that show what separates the cells
_LONGEST_NAME = 60


def sections(text: str) -> Iterator[Section]:
    """One, with a line for each record where it begins; as it came if it is no table."""
    lines = text.split("\n")
    try:
        reader = _reader(text, _delimiter(text[:_SAMPLE]))
        rows = [(row, reader.line_num) for row in reader]
    except csv.Error:
        yield Section((), lines, line=1)
        return
    shown = [""] * len(lines)
    begins = 0
    for line, (_, end) in zip(table_lines(row for row, _ in rows), rows, strict=True):
        shown[begins] = line
        begins = end
    yield Section((), shown, line=1)


def _reader(text: str, delimiter: str) -> Reader:
    return csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)


def _delimiter(sample: str) -> str:
    """The one that divides most of the first rows into equally many cells; of several, the one that
    makes more. Raises csv.Error. (csv.Sniffer takes time that grows with the square of the text.)
    """
    found: dict[tuple[int, int], str] = {}
    for delimiter in "|\t;,":
        widths = [len(row) for row in islice(_reader(sample, delimiter), _HEAD) if row]
        for width, count in Counter(widths).most_common(1):
            if width > 1 and 2 * count > len(widths):
                found[count, width] = delimiter
    if not found:
        raise csv.Error("no delimiter")
    return found[max(found)]


def table_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A line a row, empty for an empty row.

    Where a row reads like names of columns, each cell below carries its name, because a search
    returns rows without the top of their table.
    """
    cells = map(_cells, rows)
    head = list(islice(cells, _HEAD))
    place = _place_of_names(head)
    for number, row in enumerate(chain(head, cells)):
        if place is None or number <= place:
            yield " | ".join(row if number == place else filter(None, row))
        else:
            yield " | ".join(_named(head[place], at, cell) for at, cell in enumerate(row) if cell)


def _cells(row: Sequence[str]) -> list[str]:
    cells = [" ".join(cell.split()) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _place_of_names(head: list[list[str]]) -> int | None:
    """The first row that is about as wide as the table, if it is one of names. Above it stand
    titles, and notes such as "As of | May", which a blank row ends."""
    widths = sorted(len(row) for row in head if row) or [0]
    typical = widths[len(widths) // 2]
    for number, (row, below) in enumerate(pairwise(head)):
        if below and len(row) > 1 and 4 * len(row) >= 3 * typical:
            return number if _are_names(row) else None
    return None


def _are_names(cells: list[str]) -> bool:
    texts = [cell for cell in cells if cell]
    return len(set(texts)) == len(texts) and all(
        len(text) <= _LONGEST_NAME and not text[0].isdigit() for text in texts
    )


def _named(names: list[str], place: int, cell: str) -> str:
    return f"{names[place]}: {cell}" if place < len(names) and names[place] else cell
