"""The lines of a journal: events as bytes, and back.

A line is a JSON object that ends with its number, from 1, and with its checksum, so that a line
which was changed, dropped, doubled or moved is recognised. An intact line that this program
cannot read was written by another version, and is no damage.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from zlib import crc32

from pydantic import ValidationError
from pydantic_core import from_json

from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError
from unified_flow.lib.compact_json import encode
from unified_flow.turns.events import BEGINNINGS, NUMBERED, READER, SUMMED, VERSION, AnyEvent

Record = dict[str, Any]
"""A line of a journal, parsed."""

UPDATE = "update unified-flow"
_TAIL = re.compile(rb'(?:,"seq":([0-9]{1,15}))?(,"crc32":"([0-9a-f]{8})"\})$')
_TAIL_BYTES = 48  # at most; a search of whole lines takes longer than reading them
_TAIL_FIELDS = ("seq", "crc32")


def digest(value: Any) -> str:
    return hashlib.sha256(encode(value)).hexdigest()


def sealed(record: bytes, number: int) -> bytes:
    """`record`, a JSON object with at least one field, as the line of that number."""
    body = record[:-1] + b',"seq":%d' % number
    return body + b',"crc32":"%08x"}' % crc32(b"}", crc32(body))


def events_in(
    lines: Sequence[bytes], path: object, whole: Callable[[Record], Record] = lambda record: record
) -> Iterator[tuple[int, AnyEvent]]:
    """The events of a journal, each with the number of its line, from the first on.

    `whole` is given each record, and puts the values that lie elsewhere in their places; it raises
    OSError and ValueError. Raises RetrievalError for a line that is damaged or out of place, and
    JournalVersionError for one that another version wrote.
    """
    version, turn_id = 1, None
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            _check(lines, number, version)
            record = _record(line)
            if record.get("event") in BEGINNINGS:
                version = _version(record, where)
                _check(lines, number, version)
            record = whole(record)
            turn_id = record.get("turn_id", turn_id)
            copied = record.pop("copied", [])  # as this version writes them
            for each in (record, *copied):
                yield number, READER.validate_python(upcast(each, version, to=VERSION))
        except (ValueError, RecursionError, OSError) as exc:
            if isinstance(exc, ValidationError) and version >= SUMMED:
                raise other_version(where, unlike(exc), version) from exc
            reason = f"{where}: the journal is damaged: {first_line(exc)}"
            raise RetrievalError(reason, hint=remedy(turn_id)) from exc


def one_event(line: bytes, where: object) -> AnyEvent:
    """The event of a line just written. Raises JournalVersionError for a newer version's."""
    try:
        return READER.validate_python(_record(line))
    except ValidationError as exc:
        raise other_version(where, unlike(exc), VERSION) from exc


def remedy(turn_id: int | None) -> str:
    """What a person can do about a damaged journal; None for one of which nothing is whole."""
    if turn_id is None:
        return "the turn cannot be read; ask its question again"
    return f"to keep what is before the damage: unified-flow turns salvage {turn_id}"


def other_version(where: object, what: str, version: int) -> JournalVersionError:
    """The error for an intact line, of a journal of `version`, that this program cannot read."""
    if version < VERSION:
        return JournalVersionError(
            f"{where}: written by an older version of unified-flow (journal version {version}), "
            f"which this one should read and cannot: {what}",
            hint="read it with the version that wrote it, and report it",
        )
    return JournalVersionError(
        f"{where}: written by a newer version of unified-flow: {what}", hint=UPDATE
    )


def unlike(exc: ValidationError, *, within: str = "") -> str:
    """What a value lacks or has to be what this program knows; without the value."""
    first = exc.errors(include_url=False, include_input=False)[0]
    field = ".".join(filter(None, [within, *map(str, first["loc"])]))
    if first["type"] == "union_tag_invalid":
        return f"there is no event {first['ctx']['tag']!r} here"
    if first["type"] == "missing":
        return f"it lacks {field}, which this version needs"
    return f"{field}: {first['msg']}"


def first_line(exc: Exception) -> str:
    """The first line of the exception's message, or its name."""
    return (str(exc).splitlines() or [type(exc).__name__])[0]


def _check(lines: Sequence[bytes], number: int, version: int) -> None:
    """Raises ValueError if line `number` is not what was written there by journal `version`."""
    line = lines[number - 1]
    found = _tail(line)
    if found is None:
        if version >= SUMMED:
            raise ValueError("the line has no checksum")
        return
    if int(found[3], 16) != crc32(line[: found.start(2)] + b"}"):
        raise ValueError("the line is not what was written: its checksum differs")
    if found[1] is not None and int(found[1]) != number:
        raise ValueError(_misplaced(lines, number, int(found[1])))
    if found[1] is None and version >= NUMBERED:
        raise ValueError("the line has no number")


def _tail(line: bytes) -> re.Match[bytes] | None:
    return _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))


def _misplaced(lines: Sequence[bytes], number: int, found: int) -> str:
    """What became of the lines, where `found` stands and `number` belongs."""
    if found < number:
        return f"line {found} stands there again"
    tails = (_tail(line) for line in lines[number:])
    if any(tail is not None and tail[1] == b"%d" % number for tail in tails):
        return f"line {found} stands before line {number}"
    if found == number + 1:
        return f"line {number} is missing"
    return f"lines {number} to {found - 1} are missing"


def _record(line: bytes) -> Record:
    try:
        record = from_json(line)  # three times as fast
    except ValueError:  # it takes no half of a surrogate pair, either
        record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("a line is no JSON object")
    return {name: value for name, value in record.items() if name not in _TAIL_FIELDS}


def _version(record: Record, where: str) -> int:
    """Which journal version begins with this record. Raises JournalVersionError for a newer one."""
    version = record.get("version", 1)
    if not isinstance(version, int):
        raise ValueError("its version is no number")
    if version > VERSION:
        raise other_version(
            where, f"it is journal version {version}; this program reads up to {VERSION}", version
        )
    return version


def upcast(record: Record, version: int, to: int) -> Record:
    """`record`, which a program of journal version `version` wrote, as version `to` writes it.

    A step changes what it must and leaves the rest. A renamed event, phase or field, and a field
    that is now required, need one: no later version of the same major may refuse an older journal
    (architecture/journal-versions.md).
    """
    for step in range(version, to):
        record = UPCASTERS[step](record)
    return record


def _with_version(record: Record) -> Record:
    """Version 1 did not say in `turn_resumed` that it wrote it."""
    return {"version": 1, **record} if record.get("event") == "turn_resumed" else record


def _unchanged(record: Record) -> Record:
    return record


UPCASTERS: dict[int, Callable[[Record], Record]] = {
    1: _with_version,
    2: _unchanged,  # 3 has checksums
    3: _unchanged,  # 4 has numbers, forks and salvaged turns
}
