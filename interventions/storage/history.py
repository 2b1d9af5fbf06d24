"""What only grows: closed entries that had to leave the queue, and the journal of transitions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from interventions.entry import Entry, Transition, complete, fingerprints, was_resolved
from interventions.storage import jsonl

Place = tuple[int, int]  # offset and length of a line


class Archive:
    """Looks up fingerprints and ids without reading the file again: it only ever grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._for_fingerprints = jsonl.Tail(path)
        self._for_ids = jsonl.Tail(path)
        # fingerprint -> where entries with it lie that were resolved, the latest last
        self._resolved: dict[str, list[Place]] = {}
        self._ids: dict[str, Place] = {}

    def append(self, entries: Sequence[Entry]) -> None:
        jsonl.append(self.path, *(jsonl.encode(_indexed(entry)) for entry in entries), durable=True)

    def entries(self) -> Iterator[Entry]:
        return latest(jsonl.read(self.path))

    def find(self, intervention_id: str) -> Entry | None:
        """By its whole id."""
        another, lines = self._for_ids.read()
        if another:
            self._ids = {}
        for offset, line in lines:
            record = jsonl.parse_line(line)
            if record is not None and isinstance(record.get("id"), str):
                self._ids[record["id"]] = (offset, len(line))
        place = self._ids.get(intervention_id)
        return next(latest(jsonl.at(self.path, [place])), None) if place else None

    def resolved(self, names: Iterable[str], limit: int | None = None) -> Iterator[Entry]:
        """Those with one of these fingerprints that were resolved at some time."""
        self._catch_up()
        places = sorted({place for name in names for place in self._resolved.get(name, ())})
        wanted = places[-limit:] if limit else places
        return latest(jsonl.at(self.path, wanted)) if wanted else iter(())

    def last_resolved(self, fingerprint: str, excluded: Collection[str] = ()) -> Entry | None:
        self._catch_up()
        places = self._resolved.get(fingerprint)
        if places is None:
            return None
        for record in jsonl.at(self.path, reversed(places)):
            if record.get("resolved_at") and record.get("id") not in excluded:
                return _plain(record)
        return None

    def _catch_up(self) -> None:
        another, lines = self._for_fingerprints.read()
        if another:
            self._resolved = {}
        for offset, line in lines:
            for name in _index_of(line):
                self._resolved.setdefault(name, []).append((offset, len(line)))


def latest(records: Iterable[Mapping[str, Any]]) -> Iterator[Entry]:
    """The last record of each id, in the order in which these were written."""
    found: dict[str, Entry] = {}
    for record in records:
        try:
            entry = _plain(record)
        except ValueError:
            continue
        found.pop(entry["id"], None)
        found[entry["id"]] = entry
    yield from found.values()


def _plain(record: Mapping[str, Any]) -> Entry:
    return complete({name: value for name, value in record.items() if name != "index"})


_INDEX_HEAD = b'{"index":'


def _indexed(entry: Entry) -> dict[str, Any]:
    """The fingerprints it resolved come first in the line, so that a scan can stop there."""
    index = sorted(fingerprints(entry)) if was_resolved(entry) else []
    return {"index": index, **{name: value for name, value in entry.items() if name != "index"}}


def _index_of(line: bytes) -> list[str]:
    if line.startswith(_INDEX_HEAD):
        end = line.find(b"]", len(_INDEX_HEAD))
        try:
            return [str(name) for name in json.loads(line[len(_INDEX_HEAD) : end + 1])]
        except ValueError:
            return []
    record = jsonl.parse_line(line)
    try:
        entry = complete(record or {})
    except ValueError:
        return []
    return sorted(fingerprints(entry)) if was_resolved(entry) else []


class Journal:
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
