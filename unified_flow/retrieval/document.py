"""A file on disk to what the index keeps of it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import PurePath

from unified_flow.retrieval.chunk import Chunk, chunks
from unified_flow.retrieval.decode import UndecodableError, decode
from unified_flow.retrieval.formats import format_of
from unified_flow.text import language_of

MAX_BYTES = 16 * 1024 * 1024

# Formats that would need a converter; some of them would pass for text.
_NOT_READ = {
    ".pdf": "PDF", ".docx": "Word", ".doc": "Word", ".odt": "OpenDocument", ".rtf": "RTF",
    ".pptx": "PowerPoint", ".xlsx": "Excel", ".epub": "EPUB", ".ipynb": "Jupyter notebook",
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


def parse(path: str, data: bytes) -> Document:
    extension = PurePath(path).suffix.casefold()
    if kind := _NOT_READ.get(extension):
        raise SkippedError(f"{kind} files are not read")
    try:
        decoded = decode(data)
    except UndecodableError as exc:
        raise SkippedError(str(exc)) from exc
    return Document(
        language=language_of(decoded.text),
        chunks=list(chunks(format_of(extension).sections(decoded.text))),
        guessed=decoded.encoding if decoded.guessed else None,
    )
