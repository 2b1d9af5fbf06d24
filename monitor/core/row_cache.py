"""Rows that are made again only when something that they show is another. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from monitor.core.rows import Row

_IN_SECONDS = timedelta(minutes=1)


def minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)


def rounded(now: datetime, since: datetime) -> datetime:
    """An age is told in seconds for a minute and then in minutes: as long as this is the same."""
    return now.replace(microsecond=0) if now - since < _IN_SECONDS else minute(now)


class RowCache:
    """Thousands of rows that are older than a minute are made once a minute and not once a second,
    and not for every key."""

    def __init__(self) -> None:
        self._of: object = None
        self._at: datetime | None = None
        self._youngest: datetime | None = None
        self._rows: list[Row] = []

    def rows(
        self, of: object, now: datetime, make: Callable[[], tuple[list[Row], Sequence[datetime]]]
    ) -> list[Row]:
        """`of` is all that the rows are made of but the time; `make` gives the rows and the moments
        whose ages they tell. The list is the same one as long as it holds."""
        if of != self._of or self._at is None or self._rounded(now) != self._rounded(self._at):
            self._rows, moments = make()
            self._of, self._at = of, now
            self._youngest = max(moments, default=None)
        return self._rows

    def _rounded(self, moment: datetime) -> datetime:
        return minute(moment) if self._youngest is None else rounded(moment, self._youngest)
