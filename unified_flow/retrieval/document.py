"""A file on disk to what the index keeps of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from unified_flow.lib.sandbox import Part, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text import language_of
from unified_flow.retrieval.chunk import Chunk, Section, chunks
from unified_flow.retrieval.converters import INSTALL, convertible, missing, module_of
from unified_flow.retrieval.decode import UndecodableError, decode
from unified_flow.retrieval.formats import format_of

MAX_BYTES = 16 * 1024 * 1024

# Formats without a converter; some of them would pass for text.
_NOT_READ = {
    ".doc": "old Word", ".xls": "old Excel", ".ppt": "old PowerPoint", ".odt": "OpenDocument",
    ".ods": "OpenDocument", ".odp": "OpenDocument", ".rtf": "RTF", ".ipynb": "Jupyter notebook",
}  # fmt: skip


class SkippedError(Exception):
    """The message is the reason, for a person; `lasting` until the file itself changes."""

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


@dataclass(frozen=True)
class Document:
    """`guessed` names an encoding that nothing declares."""

    language: str
    chunks: list[Chunk]
    guessed: str | None


def read(path: str, max_bytes: int = MAX_BYTES) -> bytes:
    try:
        # A name may have become a pipe since it was found; opening one would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 -- a descriptor, not a path
            data = file.read(max_bytes + 1)
    except PermissionError as exc:
        raise SkippedError("permission denied", lasting=False) from exc
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        raise SkippedError(reason, lasting=False) from exc
    if len(data) > max_bytes:
        raise SkippedError(f"larger than {max_bytes / 1024 / 1024:g} MiB")
    return data


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def extension_of(path: str) -> str:
    return PurePath(path).suffix.casefold()


def refuse_unreadable(extension: str) -> None:
    """Raises SkippedError for a kind of file that cannot be read here, before any is read."""
    if kind := _NOT_READ.get(extension):
        raise SkippedError(f"{kind} files are not read")
    if convertible(extension) and (reason := missing(extension)):
        raise SkippedError(reason)


def can_be_read_now(path: str, skipped: str) -> bool:
    """Whether what the file was skipped for has been installed since."""
    return skipped.endswith(INSTALL) and missing(extension_of(path)) is None


def parse(extension: str, data: bytes, converter: Converter) -> Document:
    """Raises SkippedError for what is no text and cannot be converted to it."""
    if convertible(extension):
        try:
            return _converted(converter.convert(module_of(extension), data))
        except UnusableError as exc:
            raise SkippedError(str(exc)) from exc
    try:
        decoded = decode(data)
    except UndecodableError as exc:
        raise SkippedError(str(exc)) from exc
    return Document(
        language=language_of(decoded.text),
        chunks=list(chunks(format_of(extension).sections(decoded.text))),
        guessed=decoded.encoding if decoded.guessed else None,
    )


def _converted(parts: list[Part]) -> Document:
    sample = "\n".join(line for part in parts[:50] for line in part.lines[:50])
    return Document(language_of(sample), list(chunks(_sections(parts))), None)


def _sections(parts: list[Part]) -> Iterator[Section]:
    """With the lines numbered as `converters.lines_of` gives them."""
    line = 1
    for part in parts:
        line += len(part.lead)
        yield Section(part.trail, line, part.lines, part.lead, page=part.page)
        line += len(part.lines) + 1
