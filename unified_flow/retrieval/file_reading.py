"""Files as the index stores them: cut into chunks, each with its terms. Many are read in processes,
since reading takes ten times as long as storing."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO

from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import RetrievalError
from unified_flow.lib.sandbox import SandboxLimits, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text import terms
from unified_flow.retrieval.discovery import SECRET, FoundFile, reason_of
from unified_flow.retrieval.formats.chunk import Chunk, version_in
from unified_flow.retrieval.formats.document import (
    MAX_BYTES,
    Remarks,
    convertible,
    extension_of,
    parse,
    refuse_unreadable,
)
from unified_flow.retrieval.formats.encoding import is_packed, unpacked
from unified_flow.retrieval.secret_files import secret_in

_BATCH = 8  # files
_WORTHWHILE = 200  # files; fewer are read while processes start
_MOST = 4  # processes: storing what they read keeps another core busy

Changed = tuple[FoundFile, bytes | None]
"""A file, and the digest of what the index holds of it."""


@dataclass
class ReadFile:
    """`is_readable` is False if the next update may read it. A chunk is what stands in `chunk`
    after its file, and in `term`; a file whose content the index holds (`is_known`) has none."""

    at_ns: int  # since 1970
    digest: bytes = b""
    is_known: bool = False
    is_readable: bool = True
    remarks: Remarks = field(default_factory=Remarks)
    language: str = ""
    chunks: list[tuple[tuple[object, ...], tuple[str, str, str]]] = field(default_factory=list)


def read_files(
    files: Sequence[Changed],
    bounds: SandboxLimits,
    reading: DocumentSettings,
    language: str,
) -> Generator[ReadFile]:
    """Read the files in order; `language` is for those that do not tell theirs. Close it."""
    count = min(os.cpu_count() or 1, _MOST)
    if len(files) < _WORTHWHILE or count == 1:
        with Converter(bounds) as converter:
            for file in files:
                yield _read(file, language, converter, reading)
        return
    batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
    try:
        with ExitStack() as stack:
            setup = (bounds, reading, language)
            processes = [stack.enter_context(_process(setup)) for _ in range(count)]
            # Each goes on with a second batch while its first one is stored.
            for number, batch in enumerate([*batches, *[[]] * 2 * count]):
                questions, answers = processes[number % count]
                if number >= 2 * count:
                    yield from pickle.load(answers)
                pickle.dump(batch, questions)
                questions.flush()
    except (EOFError, BrokenPipeError, pickle.UnpicklingError) as exc:
        hint = "Is there memory enough? Nothing of the index has changed."
        raise RetrievalError("a process that read documents has ended", hint=hint) from exc


@contextmanager
def _process(setup: object) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A process that reads; multiprocessing's would run the caller's main module."""
    command = [sys.executable, "-P", "-c", f"import {__name__} as own; own.main()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump(setup, process.stdin)
            yield process.stdin, process.stdout
        finally:
            process.kill()


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not stand among them
    bounds, reading, language = pickle.load(sys.stdin.buffer)
    with suppress(EOFError, BrokenPipeError), Converter(bounds) as converter:
        while True:
            files = pickle.load(sys.stdin.buffer)
            pickle.dump([_read(file, language, converter, reading) for file in files], answers)
            answers.flush()


def _read(
    changed: Changed, language: str, converter: Converter, reading: DocumentSettings
) -> ReadFile:
    file, known = changed
    read = ReadFile(time.time_ns())
    extension = format_of(file, reading)
    try:
        refuse_unreadable(extension)
        limit = converter.bounds.file_bytes if convertible(extension) else MAX_BYTES
        data = content_of(file, limit)
        read.digest = hashlib.blake2b(data, digest_size=16).digest()
        read.is_known = read.digest == known
        if read.is_known:
            return read
        if not file.is_named and (held := secret_in(data, extension)):
            raise UnusableError(f"{SECRET}: {held}")
        parsed = parse(extension, data, converter, language, reading.ocr)
        read.language, chunks, read.remarks = parsed
        _analyse(read, file, chunks)
    except (OSError, UnusableError) as exc:
        read.is_readable = not isinstance(exc, OSError)
        why = reason_of(exc) if isinstance(exc, OSError) else str(exc)
        read.remarks = Remarks(why, unread=why if convertible(extension) else None)
    return read


def format_of(file: FoundFile, reading: DocumentSettings) -> str:
    return ".md" if file.data is not None else extension_of(file.path, reading.formats)


def content_of(file: FoundFile, max_bytes: int) -> bytes:
    """Unpacked if it is compressed. Raises OSError, and UnusableError for more."""
    if file.data is not None:
        return file.data
    # A name may have become a pipe since it was found; opening one would wait for a writer.
    descriptor = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        data = opened.read(max_bytes + 1)
    return unpacked(data, max_bytes, packed=is_packed(file.path))


def _analyse(read: ReadFile, file: FoundFile, chunks: list[Chunk]) -> None:
    language = read.language
    # A file is also found by its name: often nothing else names its subject.
    stem = PurePath(file.shown).stem
    name = [term for term in terms(stem, language) if not term.isdigit()]
    for chunk in chunks:
        above, _, title = chunk.heading.rpartition(" > ")
        if chunk.continues:  # a section is opened by its first part
            above, title = chunk.heading, ""
        trail = dict.fromkeys([*terms(above, language), *name])
        body = terms(chunk.text, language)
        version = version_in(chunk.heading, stem)
        checksum, digest = zlib.crc32(chunk.text.encode()), digest_of(chunk.heading, chunk.text)
        row = (chunk.line, chunk.end_line, chunk.page, chunk.heading, chunk.text, checksum, digest,
               chunk.continues, version)  # fmt: skip
        fields = " ".join(terms(title, language)), " ".join(trail), " ".join(body)
        read.chunks.append((row, fields))


def embedded_text(heading: str, text: str) -> str:
    """What a vector is made of."""
    return f"{heading}\n{text}" if heading else text


def digest_of(heading: str, text: str) -> bytes:
    return hashlib.sha256(embedded_text(heading, text).encode()).digest()[:16]
