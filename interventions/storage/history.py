"""What only grows: closed entries that had to leave the queue, and the journal of transitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from interventions.entry import Entry, Transition, complete, fingerprints, was_resolved
from interventions.storage import jsonl

Place = tuple[int, int]  # offset and length of a line


class Places:
    """Where the lines of a file lie, by what `keys_of` finds in them. The file only ever grows, so
    that no line is read twice."""

    def __init__(self, path: Path, keys_of: Callable[[bytes], Iterable[str]]) -> None:
        self._tail = jsonl.Tail(path)
        self._keys_of = keys_of
        self._found: dict[str, list[Place]] = {}

    def of(self, key: str) -> Sequence[Place]:
        """The latest last."""
        another, lines = self._tail.read()
        if another:
            self._found = {}
        for offset, line in lines:
            for name in self._keys_of(line):
                places = self._found.setdefault(name, [])
                # Another thread may have been given the same lines.
                if not places or places[-1][0] < offset:
                    places.append((offset, len(line)))
        return self._found.get(key, ())


def _id_of(line: bytes) -> list[str]:
    name = (jsonl.parse_line(line) or {}).get("id")
    return [name] if isinstance(name, str) else []


class Archive:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ids = Places(path, _id_of)
        # By the fingerprints of entries that were resolved.
        self._resolved = Places(path, _index_of)

    def append(self, entries: Sequence[Entry]) -> None:
        jsonl.append(self.path, *(jsonl.encode(_indexed(entry)) for entry in entries), durable=True)

    def entries(self) -> Iterator[Entry]:
        return latest(jsonl.read(self.path))

    def find(self, intervention_id: str) -> Entry | None:
        """By its whole id."""
        places = self._ids.of(intervention_id)
        return next(latest(jsonl.at(self.path, places[-1:])), None)

    def resolved(self, names: Iterable[str], limit: int | None = None) -> Iterator[Entry]:
        """Those with one of these fingerprints that were resolved at some time."""
        places = sorted({place for name in names for place in self._resolved.of(name)})
        return latest(jsonl.at(self.path, places[-limit:] if limit else places))

    def last_resolved(self, fingerprint: str, excluded: Collection[str] = ()) -> Entry | None:
        for record in jsonl.at(self.path, self._resolved.of(fingerprint)[::-1]):
            if record.get("resolved_at") and record.get("id") not in excluded:
                return _plain(record)
        return None


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
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ids = Places(path, _id_of)

    def append(self, lines: Sequence[Transition]) -> None:
        jsonl.append(self.path, *map(jsonl.encode, lines), durable=True)

    def lines(self, intervention_id: str | None = None) -> Iterator[Transition]:
        """All, or those of one entry."""
        if intervention_id is None:
            found = jsonl.read(self.path)
        else:
            found = jsonl.at(self.path, self._ids.of(intervention_id))
        return cast(Iterator[Transition], found)
