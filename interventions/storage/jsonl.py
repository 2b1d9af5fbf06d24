"""Append-only files of one JSON object a line, shared by several writers.

A writer that dies or runs out of disk may leave half a line. The next one starts on a fresh line,
and readers skip what does not parse, so that one torn line costs one line.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interventions.home import open_private

_BLOCK_BYTES = 1 << 18
_MAX_DEPTH = 400
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# What JSON does not have (NaN), and numbers longer than Python reads, become text.
_decode = json.JSONDecoder(parse_constant=str).decode
_decode_long_numbers = json.JSONDecoder(
    parse_constant=str, parse_int=lambda digits: int(digits) if len(digits) < 4000 else digits
).decode


def encode(record: Mapping[str, Any]) -> bytes:
    return _encode(record).encode("utf-8", "replace")


def decode(text: str) -> Any:
    """Raises ValueError, also for what is nested so deep that not every caller could read it."""
    try:
        value = _decode(text)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except ValueError:
        value = _decode_long_numbers(text)
    if text.count("[") + text.count("{") > _MAX_DEPTH and _is_too_deep(value):
        raise ValueError("it is nested too deep")
    return value


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
    return bool(level)


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
    """One write for all lines. Raises OSError when not all of it could be written."""
    if not lines:
        return
    fd = open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + b"\n".join(lines) + b"\n"
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Every object of the file in order; a missing file is empty, a torn line is skipped."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for line in data.split(b"\n"):
        record = parse_line(line)
        if record is not None:
            yield record


class Tail:
    """A file that only grows, read on from where the last reading ended.

    `at_most` is how many bytes of the end of a file are worth a look when it is seen first. Threads
    that read at the same time may be given the same lines, never too few.
    """

    def __init__(self, path: Path, *, at_most: int | None = None) -> None:
        self.path = path
        self._at_most = at_most
        self._inode = 0
        self._read_to = 0

    def read(self) -> tuple[bool, Iterator[tuple[int, bytes]]]:
        """Whether it is another file than before, or was cut, so that nothing read of it holds; and
        (offset, line) of each whole line that is new, which counts as read once the next block of
        the file is asked for. A missing file is empty. Both raise OSError.
        """
        try:
            found = os.stat(self.path)  # noqa: PTH116 - in every put
        except FileNotFoundError:
            another = self._inode != 0
            self._inode = self._read_to = 0
            return another, iter(())
        another = found.st_ino != self._inode or found.st_size < self._read_to
        if another:
            self._inode = found.st_ino
            self._read_to = max(found.st_size - self._at_most, 0) if self._at_most else 0
        return another, self._lines() if found.st_size != self._read_to else iter(())

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Block by block: a long file read whole would stay in the process's memory for good."""
        inode, base, rest = self._inode, self._read_to, b""
        with self.path.open("rb") as file:
            file.seek(base)
            while block := file.read(_BLOCK_BYTES):
                data, start = rest + block, 0
                # A line without its end is still being written.
                while (end := data.find(b"\n", start)) >= 0:
                    yield base + start, data[start:end]
                    start = end + 1
                base, rest = base + start, data[start:]
                if inode == self._inode:
                    self._read_to = base


def at(path: Path, places: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """The objects at (offset, length). Raises OSError."""
    if not places:
        return
    with path.open("rb") as file:
        for offset, length in places:
            file.seek(offset)
            record = parse_line(file.read(length))
            if record is not None:
                yield record


def parse_line(line: bytes) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        record = decode(line.decode())
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def torn_lines(path: Path) -> int:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    return sum(1 for line in data.split(b"\n") if line.strip() and parse_line(line) is None)
