"""Append-only files of one JSON object a line, shared by several writers.

A writer that dies or runs out of disk may leave half a line. The next one starts on a fresh line,
and readers skip what does not parse, so that one torn line costs one line.
"""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import isfinite
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any

from interventions.home import open_private

_BLOCK_BYTES = 1 << 18
_END_BYTES = 1 << 16
_WRITING_S = 0.002  # another writer's line is whole by then
_MOST_UNWRITTEN = 1000  # lines of a file; the oldest go first
_MAX_DEPTH = 400
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if isfinite(number) else digits


def _short(digits: str) -> int | str:
    return int(digits) if len(digits) < 4000 else digits


# What Python would not write as JSON again (NaN, 1e999), or not read, becomes text.
_decode = json.JSONDecoder(parse_constant=str, parse_float=_finite, parse_int=_short).decode


def encode(record: Mapping[str, Any]) -> bytes:
    return _encode(record).encode("utf-8", "replace")


def decode(text: str) -> Any:
    """Raises ValueError, also for what is nested so deep that not every caller could read it."""
    value = decode_deep(text)
    if text.count("[") + text.count("{") > _MAX_DEPTH and is_too_deep(value):
        raise ValueError("it is nested too deep")
    return value


def decode_deep(text: str) -> Any:
    """However deep it is, up to what Python reads. Raises ValueError."""
    try:
        return _decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def is_too_deep(value: Any) -> bool:
    level: list[Any] = [[value]]
    for _ in range(_MAX_DEPTH):
        inside = chain.from_iterable(o.values() if isinstance(o, dict) else o for o in level)
        level = [item for item in inside if isinstance(item, dict | list)]
        if not level:
            return False
    return True


_latest: tuple[Mapping[str, Any], bytes] = ({}, b"{}")


def encode_entry(entry: Mapping[str, Any]) -> bytes:
    """`encode` of what is never changed in place: a put writes its entry to the queue and a log."""
    global _latest
    known, encoded = _latest
    if known is not entry:
        encoded = encode(entry)
        _latest = (entry, encoded)
    return encoded


def encode_with(encoded: bytes, more: Mapping[str, Any]) -> bytes:
    """An object that is encoded already, with more fields; both must have at least one."""
    return encoded[:-1] + b"," + encode(more)[1:]


def append(path: Path, *lines: bytes, durable: bool = False) -> None:
    """Append all lines in one write. Raises OSError when not all of it could be written."""
    if not lines:
        return
    fd = open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        torn = _is_torn(fd)
        if torn:  # by a writer that was killed, unless one is at it just now
            sleep(_WRITING_S)
            torn = _is_torn(fd)
        data = (b"\n" if torn else b"") + b"\n".join(lines) + b"\n"
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _is_torn(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size > 0 and os.pread(fd, 1, size - 1) != b"\n"


_unwritten: dict[Path, deque[bytes]] = {}
_writing = Lock()


def append_or_keep(path: Path, line: bytes, *, durable: bool = False) -> None:
    """`append`, after the lines that could not be written before. Raises OSError for one that
    cannot be written now; it is kept in memory, and goes first the next time."""
    with _writing:
        waiting = _unwritten.setdefault(path, deque(maxlen=_MOST_UNWRITTEN))
        waiting.append(line)
        _write(path, waiting, durable=durable)


def _write(path: Path, waiting: deque[bytes], *, durable: bool) -> None:
    while waiting:
        append(path, waiting[0], durable=durable)
        waiting.popleft()
    del _unwritten[path]


def write_kept() -> int:
    """Write what could not be written before; how many lines still wait in this process."""
    with _writing:
        for path, waiting in list(_unwritten.items()):
            with suppress(OSError):
                _write(path, waiting, durable=True)
        return sum(map(len, _unwritten.values()))


def lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of each whole line from `start` on, block by block: a long file is never in
    memory whole. The last one may lack its end, if it is whole all the same. Raises OSError."""
    base, rest = start, b""
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(_BLOCK_BYTES):
            data, begin = rest + block, 0
            while (end := data.find(b"\n", begin)) >= 0:
                yield base + begin, data[begin:end]
                begin = end + 1
            base, rest = base + begin, data[begin:]
    if parse_line(rest) is not None:
        yield base, rest


def lacking(path: Path, wanted: Sequence[bytes]) -> list[bytes]:
    """Those of the lines that do not stand near the end of the file. Raises OSError."""
    tail = _end(path, sum(map(len, wanted)) + _END_BYTES)
    return [line for line in wanted if line not in tail]


def last_line(path: Path, ending: bytes) -> bytes | None:
    """The last line that ends so. Raises OSError."""
    for most in (_END_BYTES, 64 * _END_BYTES, None):
        before, found, _ = _end(path, most).rpartition(ending + b"\n")
        if found and (most is None or b"\n" in before):
            return before.rpartition(b"\n")[2] + ending
    return None


def _end(path: Path, most: int | None) -> bytes:
    try:
        with path.open("rb") as file:
            if most is not None:
                file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
            return file.read()
    except FileNotFoundError:
        return b""


def ends_with(path: Path, at: int, ending: bytes) -> bool:
    """Whether a line with this ending ends there. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(at - len(ending) - 1, 0))
        return not at or file.read(len(ending) + 1) == ending + b"\n"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Every object of the file in order; a missing file is empty, a torn line is skipped."""
    with suppress(FileNotFoundError):
        yield from records(line for _, line in lines(path))


def records(found: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    return filter(None, map(parse_line, found))


def parse_line(line: bytes) -> dict[str, Any] | None:
    try:
        record = decode(line.decode())
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
