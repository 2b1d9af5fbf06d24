"""Who did what to which entry: append-only, a transition a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from interventions.entry import Transition
from interventions.storage import jsonl


class JournalFile:
    """Finds the lines of one entry without reading the file again: it only ever grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tail = jsonl.Tail(path)
        self._places: dict[str, dict[int, int]] = {}  # id -> offset -> length

    def append(self, lines: Sequence[Transition]) -> None:
        jsonl.append(self.path, *map(jsonl.encode, lines), durable=True)

    def lines(self) -> Iterator[Transition]:
        return cast(Iterator[Transition], jsonl.read(self.path))

    def lines_of(self, intervention_id: str) -> Iterator[Transition]:
        another, new = self._tail.read()
        if another:
            self._places = {}
        for offset, line in new:
            record = jsonl.parse_line(line)
            if record is not None and isinstance(record.get("id"), str):
                self._places.setdefault(record["id"], {})[offset] = len(line)
        places = self._places.get(intervention_id)
        found = jsonl.at(self.path, sorted(places.items())) if places else iter(())
        return cast(Iterator[Transition], found)
