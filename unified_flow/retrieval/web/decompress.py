"""Undoing Content-Encoding within a limit: a small reply can unpack to all memory there is."""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
_GZIP_OR_ZLIB = 47
_RAW_DEFLATE = -15
_GZIP_MAGIC = b"\x1f\x8b"


class TooLargeError(Exception):
    pass


class BrokenError(Exception):
    """The message says what is wrong with the reply."""


class Body:
    """The reply so far. `encoding` is the value of Content-Encoding, at most one of ours."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._first = True
        name = encoding.strip().lower()
        if name in ("", "identity"):
            self._inflater = None
        elif name in ("gzip", "x-gzip", "deflate"):
            self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        else:
            raise BrokenError(f"it is packed as {encoding[:40]!r}, which nobody asked for")

    def add(self, raw: bytes) -> None:
        """Raises TooLargeError as soon as the limit is passed, and BrokenError."""
        if self._inflater is None:
            self._data += raw
            if len(self._data) > self._limit:
                raise TooLargeError
            return
        while raw:
            if self._inflater.eof:
                if not raw.startswith(_GZIP_MAGIC):
                    return  # padding
                self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)  # another member
            self._data += self._inflate(raw)
            if len(self._data) > self._limit:
                raise TooLargeError
            raw = self._inflater.unused_data

    def _inflate(self, raw: bytes) -> bytes:
        assert self._inflater is not None
        room = self._limit - len(self._data) + 1
        try:
            found = self._inflater.decompress(raw, room)
        except zlib.error as exc:
            if not self._first:
                raise BrokenError(f"it cannot be unpacked: {exc}") from exc
            self._inflater = zlib.decompressobj(_RAW_DEFLATE)  # what some servers call deflate
            try:
                found = self._inflater.decompress(raw, room)
            except zlib.error as again:
                raise BrokenError(f"it cannot be unpacked: {again}") from again
        self._first = False
        return found

    def finish(self) -> bytes:
        """Raises BrokenError for a reply that ended in the middle."""
        inflater = self._inflater
        if inflater is not None and not self._first and not inflater.eof:
            raise BrokenError("it ends in the middle")
        return bytes(self._data)
