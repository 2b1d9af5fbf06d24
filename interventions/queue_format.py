"""The queue file: ordinary JSON, written with one entry a line.

A line that did not change since the last reading need not be parsed again, which makes a put cheap
beside other writers. Any other layout of the same JSON is read as well, only slower.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from interventions import jsonl
from interventions.entry import Entry, complete
from interventions.store import QueueState

VERSION = 1
_HEAD = b'{"version": 1, "interventions": ['
_KNOWN = ("version", "interventions", "dropped", "admitted")

# The line of each entry; entries are never changed in place, so identity tells.
Lines = dict[int, tuple[Entry, bytes]]


def encode(state: QueueState, known: Lines) -> tuple[bytes, Lines]:
    lines: Lines = {}
    for entry in state.entries:
        old = known.get(id(entry))
        lines[id(entry)] = (
            old if old is not None and old[0] is entry else (entry, jsonl.encode(entry))
        )
    version = state.extra.get("version", VERSION)
    head = _HEAD if version == VERSION else _HEAD.replace(b"1", str(version).encode(), 1)
    tail = {"dropped": state.dropped, "admitted": state.admitted}
    tail |= {name: value for name, value in state.extra.items() if name != "version"}
    rows = b",\n".join(lines[id(entry)][1] for entry in state.entries)
    end = json.dumps(tail, ensure_ascii=False).encode("utf-8", "replace")
    return b"".join((head, b"\n" if rows else b"", rows, b"\n], ", end[1:], b"\n")), lines


def decode(data: bytes, known: Sequence[tuple[Entry, bytes]] = ()) -> tuple[QueueState, Lines]:
    """Raises ValueError when it is not a queue."""
    if data.startswith(_HEAD + b"\n"):
        try:
            return _decode_lines(data, known)
        except (ValueError, IndexError):
            pass  # an edited file; what it means is decided by reading it whole
    return _decode_any(data)


def salvage(data: bytes) -> list[Entry]:
    """The entries of a damaged file that are whole lines."""
    entries = []
    for line in data.split(b"\n"):
        record = jsonl.parse_line(line.rstrip(b",\r "))
        if record is not None and "id" in record:
            try:
                entries.append(complete(record))
            except ValueError:
                continue
    return entries


def _decode_lines(data: bytes, known: Sequence[tuple[Entry, bytes]]) -> tuple[QueueState, Lines]:
    rows = data.split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    tail = json.loads(b'{"interventions": [' + rows[-1])
    lines: Lines = {}
    entries = []
    by_line: dict[bytes, tuple[Entry, bytes]] | None = None
    last = len(rows) - 2
    for number in range(1, len(rows) - 1):
        row = rows[number]
        if number != last:
            if not row.endswith(b","):
                raise ValueError("a line without its comma")
            row = row[:-1]
        # Nearly always the line is the one that was there before.
        old = known[number - 1] if number <= len(known) else None
        if old is None or old[1] != row:
            if by_line is None:
                by_line = {pair[1]: pair for pair in known}
            old = by_line.get(row)
        if old is None:
            old = (complete(_object(row)), row)
        entries.append(old[0])
        lines[id(old[0])] = old
    return _state(tuple(entries), {"version": VERSION, **tail}), lines


def _object(row: bytes) -> Entry:
    entry = json.loads(row)
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")
    return entry


def _decode_any(data: bytes) -> tuple[QueueState, Lines]:
    document = json.loads(data.decode("utf-8-sig"))
    if not isinstance(document, dict) or not isinstance(document.get("interventions"), list):
        raise ValueError('it is not an object with a list "interventions"')
    entries = tuple(complete(entry) for entry in document["interventions"])
    return _state(entries, document), {}


def _state(entries: tuple[Entry, ...], document: dict[str, object]) -> QueueState:
    extra = {name: value for name, value in document.items() if name not in _KNOWN}
    version = document.get("version", VERSION)
    if version != VERSION:
        extra["version"] = version
    ids = {entry["id"] for entry in entries}
    if len(ids) != len(entries):
        raise ValueError("two entries have the same id")
    return QueueState(
        entries, _counts(document.get("dropped")), _counts(document.get("admitted")), extra
    )


def _counts(value: object) -> dict[str, int]:
    """Counters by name; the bare number of a hand-made file counts as unnamed."""
    if value is None:
        return {}
    if isinstance(value, int):
        return {"unknown": value} if value else {}
    if not isinstance(value, dict) or not all(isinstance(n, int) for n in value.values()):
        raise ValueError("the counters are not numbers by name")
    return dict(value)
