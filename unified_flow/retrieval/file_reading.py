"""A file as the index stores it: read, converted, cut into chunks, each with its terms."""

from __future__ import annotations

import hashlib
import time
import zlib
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple

from unified_flow.lib.sandbox import UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text import terms
from unified_flow.retrieval.discovery import FoundFile
from unified_flow.retrieval.formats.chunk import version_in
from unified_flow.retrieval.formats.document import (
    MAX_BYTES,
    Document,
    UnreadableError,
    convertible,
    extension_of,
    file_bytes,
    parse,
    refuse_unreadable,
)


class ChunkRow(NamedTuple):
    """The columns of `chunk` after its file, then those of `term`."""

    line: int
    end_line: int
    page: int | None
    heading: str
    text: str
    checksum: int
    digest: bytes
    version: str
    title_terms: str
    trail_terms: str
    body_terms: str


@dataclass
class ReadFile:
    """`skipped` says why it has no chunks, `is_readable` is False if the next update may read it;
    of a file whose digest is known as well there is nothing more. `at_ns`: since 1970."""

    at_ns: int
    digest: bytes = b""
    is_known: bool = False
    skipped: str | None = None
    is_readable: bool = True
    language: str = ""
    guessed: str | None = None
    terms: int = 0
    chunks: list[ChunkRow] = field(default_factory=list)


def read_file(
    file: FoundFile, known: bytes | None, language: str, converter: Converter
) -> ReadFile:
    """`known` is the digest of what the index holds of it, `language` that of most files."""
    read = ReadFile(time.time_ns())
    try:
        extension = file.extension or extension_of(file.path)
        refuse_unreadable(extension)
        limit = converter.bounds.file_bytes if convertible(extension) else MAX_BYTES
        data = file_bytes(file.path, limit) if file.data is None else file.data
        read.digest = hashlib.blake2b(data, digest_size=16).digest()
        read.is_known = read.digest == known
        if not read.is_known:
            _analyse(read, file, parse(extension, data, converter, language))
    except UnusableError as exc:
        read.skipped, read.is_readable = str(exc), not isinstance(exc, UnreadableError)
    return read


def _analyse(read: ReadFile, file: FoundFile, document: Document) -> None:
    read.language = language = document.language
    read.guessed = document.guessed
    # A file is also found by its name: often nothing else names its subject.
    stem = PurePath(file.shown).stem
    name = [term for term in terms(stem, language) if not term.isdigit()]
    before = ""
    for chunk in document.chunks:
        above, _, title = chunk.heading.rpartition(" > ")
        if chunk.heading == before:  # a section is opened by its first part
            above, title = chunk.heading, ""
        before = chunk.heading
        body = terms(chunk.text, language)
        read.terms += len(body)
        row = ChunkRow(
            chunk.line, chunk.end_line, chunk.page, chunk.heading, chunk.text,
            zlib.crc32(chunk.text.encode()), digest_of(chunk.heading, chunk.text),
            version_in(chunk.heading, stem), " ".join(terms(title, language)),
            " ".join(dict.fromkeys([*terms(above, language), *name])), " ".join(body),
        )  # fmt: skip
        read.chunks.append(row)


def embedded_text(heading: str, text: str) -> str:
    """What a vector is made of."""
    return f"{heading}\n{text}" if heading else text


def digest_of(heading: str, text: str) -> bytes:
    return hashlib.sha256(embedded_text(heading, text).encode()).digest()[:16]
