"""The archive as it grows: what health asks of it, and its entries once the history is shown."""

from __future__ import annotations

from pathlib import Path

from interventions.entry import Entry
from interventions.storage.archive import latest
from interventions.storage.jsonl import Tail, parse_line
from interventions.upkeep.health import Past, past


class Archived:
    """Each line is read once. Of an entry two figures are kept; the entry whole only if wanted."""

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        self._tail = Tail(path)
        self._whole = whole
        self.figures: dict[str, Past] = {}
        self.entries: dict[str, Entry] = {}

    def read_on(self) -> None:
        """Raises OSError."""
        another, lines = self._tail.read()
        if another:
            self.figures, self.entries = {}, {}
        for _, line in lines:
            # One at a time: all of a long past at once would be held for good.
            for entry in latest(filter(None, [parse_line(line)])):
                if self._whole:
                    self.entries[entry["id"]] = entry
                else:
                    self.figures[entry["id"]] = past(entry)
