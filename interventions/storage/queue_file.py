"""The queue file: ordinary JSON, written with one entry a line, and only ever replaced whole.

A line that did not change since the last reading need not be parsed again, which makes a put cheap
beside other writers. Any other layout of the same JSON is read as well, only slower. Of the turns
that an entry blocks the file has the latest; the others are in the error log, which has a line for
each failure that the entry holds.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints, is_typeddict

from interventions import home as places
from interventions.entry import Entry, MergedFailure, Transition, complete
from interventions.errors import CorruptQueueError, StorageError
from interventions.storage import jsonl
from interventions.times import from_text

VERSION = 1
REBUILD = "run `interventions doctor`: it rebuilds the queue from the logs"
_HEAD = b'{"version": 1, "interventions": ['
# `letters` was written by versions before.
_KNOWN = ("version", "interventions", "transitions", "failures", "dropped", "admitted", "letters")
# The turns that an entry of the queue file has at most, and those that stay when it has more.
MOST_IN_FILE, KEPT = 200, 100

_NOTHING: dict[str, Any] = {}
# The entry of each line; entries are never changed in place, so identity tells.
Lines = dict[bytes, Entry]
# The fingerprint and the turns of each failure that an entry holds, the oldest first.
TurnsByFailure = list[tuple[str, list[int]]]


class LogLine(NamedTuple):
    """A line of the error log of that day; `letter` is the one in which the failure came."""

    day: date
    letter: str
    data: bytes


class QueueState(NamedTuple):
    """All that is in the queue, in the order in which it was accepted.

    `dropped` counts by reason, `admitted` by kind. `transitions` and `failures` are the lines that
    the last change has in the journal and in the error log: its writer may have been killed
    before it wrote them there. `extra` is what a newer version wrote beside them. `unusable` are
    entries that a hand or another program has damaged, each with what is wrong. Nothing in it may
    be changed in place.
    """

    entries: tuple[Entry, ...] = ()
    dropped: dict[str, int] = _NOTHING
    admitted: dict[str, int] = _NOTHING
    extra: dict[str, Any] = _NOTHING
    transitions: tuple[Transition, ...] = ()
    failures: tuple[LogLine, ...] = ()
    unusable: tuple[tuple[Any, str], ...] = ()


def encode(state: QueueState, known: Lines) -> tuple[tuple[bytes, ...], Lines]:
    """The parts of the file, which is too large to be joined in every put."""
    line_of = dict(zip(map(id, known.values()), known, strict=True))
    found = zip(map(line_of.get, map(id, state.entries)), state.entries, strict=True)
    lines = {line or jsonl.encode_entry(entry): entry for line, entry in found}
    version = state.extra.get("version", VERSION)
    head = _HEAD if version == VERSION else _HEAD.replace(b"1", jsonl.encode(version), 1)
    tail = {"dropped": state.dropped, "admitted": state.admitted}
    tail |= {name: value for name, value in state.extra.items() if name != "version"}
    rows = [*lines, *(jsonl.encode(row) for row, _ in state.unusable)]
    end = jsonl.encode(tail)[1:]
    if state.failures:
        end = b'"failures":[' + b",".join(line.data for line in state.failures) + b"],\n" + end
    if state.transitions:
        end = jsonl.encode({"transitions": state.transitions})[1:-1] + b",\n" + end
    return (head, b"\n" if rows else b"", b",\n".join(rows), b"\n], ", end, b"\n"), lines


def decode(data: bytes, known: Lines | None = None) -> tuple[QueueState, Lines]:
    """Raises ValueError when it is not a queue."""
    if data.startswith(_HEAD + b"\n"):
        # An edited file is decided by reading it whole.
        with suppress(ValueError):
            return _decode_lines(data, known or {})
    return _decode_whole(data), {}


def salvage(data: bytes) -> list[Entry]:
    """The entries of a damaged file that are whole lines."""
    rows = [jsonl.parse_line(line.rstrip(b",\r ")) for line in data.split(b"\n")]
    return _usable([row for row in rows if row and "id" in row])[0]


def _decode_lines(data: bytes, known: Lines) -> tuple[QueueState, Lines]:
    rows, _, end = data[len(_HEAD) + 1 :].rpartition(b"\n], ")
    lines = rows.split(b",\n")
    entries = [known.get(line) or complete(jsonl.decode(line.decode())) for line in lines]
    state = _state(entries, {"version": VERSION, **jsonl.decode("{" + end.decode())})
    return state, dict(zip(lines, entries, strict=True))


def _decode_whole(data: bytes) -> QueueState:
    document = jsonl.decode_deep(data.decode("utf-8-sig"))
    if not isinstance(document, dict) or not isinstance(document.get("interventions"), list):
        raise ValueError('it is not an object with a list "interventions"')
    entries, unusable = _usable(document["interventions"])
    if unusable and not entries:
        raise ValueError(unusable[0][1])
    return _state(entries, document)._replace(unusable=tuple(unusable))


def _usable(rows: Iterable[Any]) -> tuple[list[Entry], list[tuple[Any, str]]]:
    """(the entries, what is none with the reason): one damaged entry costs one entry."""
    entries: dict[str, Entry] = {}
    unusable: list[tuple[Any, str]] = []
    for row in rows:
        try:
            entry = complete(row)
            if jsonl.is_too_deep(row):
                raise ValueError(f"{entry['id']} is nested too deep")
            if entry["id"] in entries:
                raise ValueError(f"{entry['id']} is there twice")
            entries[entry["id"]] = entry
        except ValueError as error:
            unusable.append((row, str(error)))
    return list(entries.values()), unusable


def _state(entries: Sequence[Entry], document: dict[str, Any]) -> QueueState:
    if len({entry["id"] for entry in entries}) != len(entries):
        raise ValueError("two entries have the same id")
    extra = {name: value for name, value in document.items() if name not in _KNOWN}
    version = document.get("version", VERSION)
    if version != VERSION:
        extra["version"] = version
    dropped, admitted = _counts(document.get("dropped")), _counts(document.get("admitted"))
    # What a hand made of these lines is none.
    lists = (document.get(name) for name in ("transitions", "failures"))
    transitions, failures = (each if isinstance(each, list) else [] for each in lists)
    noted = tuple(cast(Transition, line) for line in transitions if is_transition(line))
    logged = tuple(filter(None, map(_log_line, failures)))
    return QueueState(tuple(entries), dropped, admitted, extra, noted, logged)


def _log_line(line: Any) -> LogLine | None:
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        letter = line.get("letter", "")
        if re.fullmatch("[0-9a-f]*", letter):
            return LogLine(from_text(line["logged_at"]).date(), letter, jsonl.encode(line))
    return None


def is_transition(line: object) -> bool:
    """Whether it has the shape of a line of the journal; a hand may have written another."""
    if not isinstance(line, dict):
        return False
    needed = {*_ALWAYS, *_NEEDED_BY.get(str(line.get("action")), ())}
    if "after" in line:
        needed |= {"id", "by", "version_from", "version_to", "before", "after"}
    return all(line.get(name) is not None for name in needed) and all(
        _fits(line[name], hint) for name, hint in _FIELDS.items() if line.get(name) is not None
    )


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is list:
        return isinstance(value, list) and all(isinstance(one, get_args(hint)) for one in value)
    return isinstance(value, dict if is_typeddict(hint) else hint)


_FIELDS = get_type_hints(Transition)
_ALWAYS = ("transition_id", "at", "action")
_NEEDED_BY = {"prune": ("closed_before",), "drain": ("id", "failure_id")}


def _counts(value: object) -> dict[str, int]:
    """Counters by name; the bare number of a hand-made file counts as unnamed."""
    if value is None:
        return {}
    if isinstance(value, int):
        return {"unknown": value} if value else {}
    if not isinstance(value, dict) or not all(isinstance(n, int) for n in value.values()):
        raise ValueError("the counters are not numbers by name")
    return dict(value)


def read_state(path: Path) -> QueueState | None:
    """The queue as last committed, each entry with its latest turns; None if there is no file. No
    lock, no cache; nothing is moved or changed. Raises StorageError."""
    with reading(path):
        try:
            data = content(path)
        except FileNotFoundError:
            return None
    try:
        return decode(data)[0]
    except ValueError as error:
        raise CorruptQueueError(f"CORRUPT: {path} does not parse: {error}", hint=REBUILD) from error


def content(path: Path) -> bytes:
    """Raises OSError, also for what is no regular file: a pipe would never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    # Before a file is made of it, which would name the descriptor of a folder, and not its path.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an OSError of the file, or of another that it names, into a StorageError."""
    try:
        yield
    except OSError as error:
        raise storage_error("read", Path(error.filename or path), error) from error


def storage_error(verb: str, path: Path, error: OSError) -> StorageError:
    hint = "make room or mend the permissions; `interventions doctor` says which"
    return StorageError(f"cannot {verb} {path}: {error.strerror or error}", hint=hint)


def may_have_more(entry: Entry) -> bool:
    """Whether turns of it may be in the log alone."""
    return len(entry["turns"]) >= KEPT


def shortened(entry: Entry) -> Entry:
    """The entry with its latest turns only, if it has more than the file takes."""
    if len(entry["turns"]) <= MOST_IN_FILE:
        return entry
    kept = entry["turns"][-KEPT:]
    rows: list[MergedFailure] = [
        {**row, "turns": [turn for turn in row["turns"] if turn in kept]} if "turns" in row else row
        for row in entry["merged"]
    ]
    return {**entry, "turns": kept, "merged": rows}


def with_all_turns(entry: Entry, failures_of: Callable[[str], TurnsByFailure]) -> Entry:
    """The entry with all its turns, also those that only the log has (`failures_of`)."""
    if not may_have_more(entry):
        return entry
    turns: list[int] = []
    by_row: dict[str, list[int]] = defaultdict(list)
    rows = {row.get("fingerprint") or "" for row in entry["merged"]}
    for fingerprint, found in failures_of(entry["id"]):
        others = [turn for turn in found if turn != entry["turn_id"]]
        turns += others
        if fingerprint != entry["fingerprint"]:
            by_row[fingerprint if fingerprint in rows else ""] += others
    merged: list[MergedFailure] = []
    for row in entry["merged"]:
        before = by_row[row.get("fingerprint") or ""]
        merged.append({**row, "turns": _each_once([*before, *(row.get("turns") or ())])})
    return {**entry, "turns": _each_once([*turns, *entry["turns"]]), "merged": merged}


def _each_once(turns: list[int]) -> list[int]:
    """A turn that failed again stands where it failed last."""
    return list(dict.fromkeys(reversed(turns)))[::-1]


def read_checked(home: Path) -> QueueState | None:
    """The queue, if all is as it was when nothing of it was lost, and all of it is in its file: its
    readers need no index of the logs. Raises StorageError."""
    seen = look(home)
    if not seen or seen != _noted(home):
        return None
    state = read_state(places.queue_file(home))
    return None if state is None or any(map(may_have_more, state.entries)) else state


def look(home: Path) -> bytes:
    """A mark of all files that say what should be in the queue; empty without a queue file.

    By the time of the last change of each file, which a copy or a new mode changes, too."""
    try:
        rows = [_row(path) for path in (places.queue_file(home), *places.error_logs(home))]
        for path in (places.archive_file(home), places.transitions_file(home)):
            with suppress(FileNotFoundError):
                rows.append(_row(path))
    except OSError:
        return b""
    return "\n".join(rows).encode("utf-8", "surrogateescape")


def _row(path: Path) -> str:
    found = os.stat(path)  # noqa: PTH116 - of every log, by every command
    return f"{path.name} {found.st_ino} {found.st_size} {found.st_ctime_ns}"


def note_checked(home: Path, seen: bytes) -> None:
    """Note that nothing of what was seen is lost; a user who may not write checks again."""
    if seen and seen != _noted(home):
        with suppress(OSError):
            fd = places.open_private(places.checked_file(home), os.O_WRONLY | os.O_TRUNC)
            with os.fdopen(fd, "wb") as file:
                file.write(seen)


def _noted(home: Path) -> bytes | None:
    try:
        return places.checked_file(home).read_bytes()
    except OSError:
        return None
