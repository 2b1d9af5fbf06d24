"""Closed entries that had to leave the queue: append-only, the last record of an id wins."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from interventions import jsonl
from interventions.entry import Entry, complete, fingerprints


class ArchiveFile:
    """Looks up fingerprints without reading the file again: it only ever grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self._inode = 0
        self._read_to = 0
        # fingerprint -> where resolved entries with it lie, the latest last
        self._resolved: dict[str, list[tuple[int, int]]] = {}

    def append(self, entries: Sequence[Entry]) -> None:
        jsonl.append(self.path, *(jsonl.encode(_indexed(entry)) for entry in entries), durable=True)

    def entries(self) -> Iterator[Entry]:
        latest: dict[str, Entry] = {}
        for record in jsonl.read(self.path):
            try:
                entry = _plain(record)
            except ValueError:
                continue
            latest.pop(entry["id"], None)
            latest[entry["id"]] = entry
        yield from latest.values()

    def last_resolved(self, fingerprint: str, but_not: Collection[str] = ()) -> Entry | None:
        self._catch_up()
        places = self._resolved.get(fingerprint)
        if places is None:
            return None
        with self.path.open("rb") as file:
            for offset, length in reversed(places):
                file.seek(offset)
                record = jsonl.parse_line(file.read(length))
                if record is not None and record.get("id") not in but_not:
                    return _plain(record)
        return None

    def _catch_up(self) -> None:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - in every put
        except FileNotFoundError:
            self._forget()
            return
        if found.st_ino != self._inode or found.st_size < self._read_to:
            self._forget()
            self._inode = found.st_ino
        if found.st_size == self._read_to:
            return
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._note(data[start:end], self._read_to + start)
            start = end + 1
        self._read_to += start

    def _note(self, line: bytes, offset: int) -> None:
        index = _index_of(line)
        for name in index:
            self._resolved.setdefault(name, []).append((offset, len(line)))


def _plain(record: Entry) -> Entry:
    return complete({name: value for name, value in record.items() if name != "index"})


_INDEX_HEAD = b'{"index":'


def _indexed(entry: Entry) -> Entry:
    """The fingerprints it resolves come first in the line, so that a scan can stop there."""
    index = sorted(fingerprints(entry)) if entry.get("resolved_at") else []
    return {"index": index, **{name: value for name, value in entry.items() if name != "index"}}


def _index_of(line: bytes) -> list[str]:
    if line.startswith(_INDEX_HEAD):
        end = line.find(b"]", len(_INDEX_HEAD))
        try:
            return [str(name) for name in json.loads(line[len(_INDEX_HEAD) : end + 1])]
        except ValueError:
            return []
    record = jsonl.parse_line(line)
    return sorted(fingerprints(record)) if record and record.get("resolved_at") else []
