"""Bringing the index in line with the files: one transaction, only what changed is read."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath

from unified_flow.config.document_roots import Root
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text import terms
from unified_flow.retrieval.converters import convertible
from unified_flow.retrieval.discover import Found, FoundFile, Stamp
from unified_flow.retrieval.document import (
    Document,
    SkippedError,
    can_be_read_now,
    digest,
    extension_of,
    parse,
    read,
    refuse_unreadable,
)

Progress = Callable[[int, int], None]
"""Called with (files done, files in all)."""

# A file written this shortly before it is read may change again within one tick of its clock.
_UNSETTLED_NS = 50_000_000


@dataclass(frozen=True)
class _Known:
    id: int
    stamp: Stamp
    digest: bytes
    guessed: str | None
    skipped: str | None


@dataclass
class Counts:
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    guessed: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction, begun by taking the only writer's place; undone by any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def is_current(
    connection: sqlite3.Connection, found: Sequence[tuple[Root, Found]]
) -> Counts | None:
    """The counts if nothing has to be written, else None."""
    counts = Counts()
    known = _known(connection)
    seen: set[str] = set()
    for root, each in found:
        root_id = _root_id(connection, root)
        if root_id is None or _members(connection, root_id) != _wanted(each, known):
            return None
        for file in each.files:
            was = known.get(os.fsencode(file.path))
            if was is None or not _is_unchanged(file, was):
                return None
            if file.path not in seen:
                _count_unchanged(counts, file, was)
            seen.add(file.path)
        counts.skipped += each.skipped
    return counts


def bring_up_to_date(
    connection: sqlite3.Connection,
    found: Sequence[tuple[Root, Found]],
    *,
    max_bytes: int,
    converter: Converter,
    progress: Progress | None,
) -> Counts:
    """Inside `writing`. Only files under the given roots are touched."""
    counts = Counts()
    known = _known(connection)
    done: set[str] = set()
    total = sum(len(each.files) for _, each in found)
    for root, each in found:
        connection.execute("INSERT OR IGNORE INTO root (path) VALUES (?)", (os.fsencode(root),))
        root_id = _root_id(connection, root)
        before = _members(connection, root_id)
        now: dict[int, str] = {}
        for number, file in enumerate(each.files, len(done) + 1):
            if file.path not in done:
                _update_file(connection, file, known, counts, max_bytes, converter)
                done.add(file.path)
            if (was := known.get(os.fsencode(file.path))) is not None:
                now[was.id] = file.shown
            if progress is not None:
                progress(number, total)
        counts.skipped += each.skipped
        connection.executemany(
            "DELETE FROM member WHERE root_id = ? AND file_id = ?",
            [(root_id, gone) for gone in before.keys() - now.keys()],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO member VALUES (?, ?, ?)",
            [(root_id, file_id, shown) for file_id, shown in now.items() - before.items()],
        )
    counts.removed += _remove_orphans(connection)
    return counts


def forget_roots(connection: sqlite3.Connection, roots: Sequence[Root]) -> int:
    """Takes roots and what only they held out of the index; returns the files removed."""
    for root in roots:
        root_id = _root_id(connection, root)
        connection.execute("DELETE FROM member WHERE root_id = ?", (root_id,))
        connection.execute("DELETE FROM root WHERE id = ?", (root_id,))
    return _remove_orphans(connection)


def _known(connection: sqlite3.Connection) -> dict[bytes, _Known]:
    rows = connection.execute(
        "SELECT path, id, mtime_ns, ctime_ns, size, digest, guessed, skipped FROM file"
    )
    return {
        path: _Known(id, Stamp(mtime, ctime, size), digest, guessed, skipped)
        for path, id, mtime, ctime, size, digest, guessed, skipped in rows
    }


def _root_id(connection: sqlite3.Connection, root: Root) -> int | None:
    row = connection.execute("SELECT id FROM root WHERE path = ?", (os.fsencode(root),)).fetchone()
    return row[0] if row else None


def _members(connection: sqlite3.Connection, root_id: int | None) -> dict[int, str]:
    return dict(
        connection.execute("SELECT file_id, shown FROM member WHERE root_id = ?", (root_id,))
    )


def _wanted(found: Found, known: dict[bytes, _Known]) -> dict[int, str]:
    files = ((known.get(os.fsencode(file.path)), file.shown) for file in found.files)
    return {was.id: shown for was, shown in files if was is not None}


def _count_unchanged(counts: Counts, file: FoundFile, was: _Known) -> None:
    if was.skipped:
        counts.skipped.append((file.shown, was.skipped))
        return
    counts.unchanged += 1
    if was.guessed:
        counts.guessed.append((file.shown, was.guessed))


def _update_file(
    connection: sqlite3.Connection,
    file: FoundFile,
    known: dict[bytes, _Known],
    counts: Counts,
    max_bytes: int,
    converter: Converter,
) -> None:
    key = os.fsencode(file.path)
    was = known.get(key)
    if was is not None and _is_unchanged(file, was):
        _count_unchanged(counts, file, was)
        return
    content = b""
    document: Document | None = None
    reason: str | None = None
    try:
        extension = file.extension or extension_of(file.path)
        refuse_unreadable(extension)
        data = _content(file, converter.bounds.file_bytes if convertible(extension) else max_bytes)
        content = digest(data)
        if was is not None and was.digest == content:
            connection.execute(
                "UPDATE file SET mtime_ns = ?, ctime_ns = ?, size = ?, read_at = ? WHERE id = ?",
                (*_stored(file), _read_at(file), was.id),
            )
            _count_unchanged(counts, file, was)
            return
        document = parse(extension, data, converter)
    except SkippedError as exc:
        reason = str(exc)
        counts.skipped.append((file.shown, reason))
        if not exc.lasting:
            known.pop(key, None)  # no member any more: removed as if it were gone
            return
    if document is not None:
        counts.changed += was is not None and was.skipped is None
        counts.added += was is None or was.skipped is not None
        if document.guessed:
            counts.guessed.append((file.shown, document.guessed))
    if was is not None:
        _delete_chunks(connection, was.id)
    file_id = _insert(connection, was, file, content, document, reason)
    guessed = document.guessed if document else None
    known[key] = _Known(file_id, file.stamp, content, guessed, reason)


def _is_unchanged(file: FoundFile, was: _Known) -> bool:
    if was.skipped is not None and can_be_read_now(file.path, was.skipped):
        return False
    return was.stamp == file.stamp


def _content(file: FoundFile, max_bytes: int) -> bytes:
    return read(file.path, max_bytes) if file.data is None else file.data


def _read_at(file: FoundFile) -> int:
    """Seconds since 1970."""
    at = time.time_ns() if file.data is None else file.stamp.mtime_ns
    return at // 1_000_000_000


def _stored(file: FoundFile) -> tuple[int, int, int]:
    """The stamp to remember; one that cannot be relied on is remembered as none."""
    stamp = file.stamp
    if file.data is None and time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) < _UNSETTLED_NS:
        return 0, 0, stamp.size
    return stamp.mtime_ns, stamp.ctime_ns, stamp.size


def _insert(
    connection: sqlite3.Connection,
    was: _Known | None,
    file: FoundFile,
    content: bytes,
    document: Document | None,
    reason: str | None,
) -> int:
    language = document.language if document else ""
    guessed = document.guessed if document else None
    file_id: int = connection.execute(
        "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?) RETURNING id",
        (was.id if was else None, os.fsencode(file.path), *_stored(file), content, language,
         guessed, reason, _read_at(file)),
    ).fetchone()[0]  # fmt: skip
    if document is None or not document.chunks:
        return file_id
    # A file is also found by its name: what is asked of often stands in nothing but that.
    name = [term for term in terms(PurePath(file.shown).stem, language) if not term.isdigit()]
    length = 0
    for chunk in document.chunks:
        heading = [*dict.fromkeys([*terms(chunk.heading, language), *name])]
        body = terms(chunk.text, language)
        length += len(body)
        row = connection.execute(
            "INSERT INTO chunk VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
            (file_id, chunk.line, chunk.end_line, chunk.page, chunk.heading, chunk.text,
             zlib.crc32(chunk.text.encode())),
        )  # fmt: skip
        connection.execute(
            "INSERT INTO term (rowid, heading, body) VALUES (?, ?, ?)",
            (row.lastrowid, " ".join(heading), " ".join(body)),
        )
    connection.execute(
        "UPDATE file SET chunks = ?, terms = ? WHERE id = ?",
        (len(document.chunks), length, file_id),
    )
    return file_id


def _delete_chunks(connection: sqlite3.Connection, file_id: int) -> None:
    connection.execute(
        "DELETE FROM term WHERE rowid IN (SELECT id FROM chunk WHERE file_id = ?)", (file_id,)
    )
    connection.execute("DELETE FROM chunk WHERE file_id = ?", (file_id,))


def _remove_orphans(connection: sqlite3.Connection) -> int:
    """Files that no root holds any more; returns how many of them could be searched."""
    orphans = connection.execute(
        "SELECT id, skipped FROM file WHERE id NOT IN (SELECT file_id FROM member)"
    ).fetchall()
    for file_id, _ in orphans:
        _delete_chunks(connection, file_id)
        connection.execute("DELETE FROM file WHERE id = ?", (file_id,))
    return sum(skipped is None for _, skipped in orphans)
