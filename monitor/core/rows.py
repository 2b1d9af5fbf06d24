"""Rows of cells for `row_list`: how they are laid out in a width, and kept as long as they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.cells import cell_len, set_cell_size

GAP = 1
_SHOWN_IN_SECONDS = timedelta(minutes=1)


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
    """Text that is safe to show; before it `badges`, each a word with its style."""

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
        given_up = min(max(wanted - room, 0), spare)
        sizes[number] -= given_up
        room += given_up
    return [(n, sizes[n] if columns[n].size else max(room, 4)) for n in shown]


def cut(text: str, size: int, *, right: bool = False) -> str:
    """Exactly `size` columns, with an ellipsis where something is missing."""
    length = cell_len(text)
    if length > size:
        return set_cell_size(set_cell_size(text, max(size - 1, 0)).rstrip() + "…", size)
    return " " * (size - length) + text if right else text + " " * (size - length)


def short_number(number: int) -> str:
    """Four characters at most, up to a thousand million: 9999, 12k, 3M."""
    if number >= 10**6:
        return f"{number // 10**6}M"
    return f"{number // 1000}k" if number >= 10**4 else str(number)


def whole_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)


def age_step(now: datetime, since: datetime) -> datetime:
    """As long as this is the same, so is the age on the screen: it counts seconds for a minute,
    then minutes."""
    return now.replace(microsecond=0) if now - since < _SHOWN_IN_SECONDS else whole_minute(now)


class RowCache:
    """Rows are made again only when something that they show changes: thousands of rows older than
    a minute once a minute, not every second and not for every key."""

    def __init__(self) -> None:
        self._made_of: object = None
        self._made_at: datetime | None = None
        self._youngest: datetime | None = None
        self._rows: list[Row] = []

    def rows(
        self,
        made_of: object,
        now: datetime,
        make: Callable[[], tuple[list[Row], Sequence[datetime]]],
    ) -> list[Row]:
        """`made_of` is all that the rows depend on but the time; `make` gives the rows and the
        moments whose ages they show. The list is the same object as long as it holds."""
        fresh = self._made_at is not None and self._step(now) == self._step(self._made_at)
        if not fresh or made_of != self._made_of:
            self._rows, moments = make()
            self._made_of, self._made_at = made_of, now
            self._youngest = max(moments, default=None)
        return self._rows

    def _step(self, moment: datetime) -> datetime:
        return age_step(moment, self._youngest) if self._youngest else whole_minute(moment)
