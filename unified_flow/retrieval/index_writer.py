"""Bringing the index in line with the files: only what changed is read and written."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath

from unified_flow.config.document_roots import Root
from unified_flow.lib.sandbox import UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text import terms
from unified_flow.retrieval.discovery import Discovery, FoundFile, Stamp
from unified_flow.retrieval.formats.chunk import version_in
from unified_flow.retrieval.formats.document import (
    MAX_BYTES,
    Document,
    UnreadableError,
    can_be_read_now,
    convertible,
    extension_of,
    file_bytes,
    parse,
    refuse_unreadable,
)
from unified_flow.retrieval.index_reader import scope_of

Progress = Callable[..., None]
"""Called with (files done, files in all), or with numbers of passages and "embedding"."""

# A file written this shortly before it is read may change again within one tick of its clock.
_UNSETTLED_NS = 50_000_000


@dataclass(frozen=True)
class StoredFile:
    """What the index knows of a file; `skipped` says why it has no chunks."""

    id: int
    stamp: Stamp
    digest: bytes
    guessed: str | None
    skipped: str | None

    def is_current(self, file: FoundFile) -> bool:
        if self.skipped is not None and can_be_read_now(file.path, self.skipped):
            return False
        return self.stamp == file.stamp


@dataclass
class Counts:
    """`skipped` holds (path, reason), `guessed` (path, encoding)."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    guessed: list[tuple[str, str]] = field(default_factory=list)

    def count_unchanged(self, file: FoundFile, stored: StoredFile) -> None:
        if stored.skipped:
            self.skipped.append((file.shown, stored.skipped))
            return
        self.unchanged += 1
        if stored.guessed:
            self.guessed.append((file.shown, stored.guessed))


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction, which holds the write lock from the beginning; any exception undoes it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def counts_if_current(
    connection: sqlite3.Connection, found: Sequence[tuple[Root, Discovery]]
) -> Counts | None:
    """The counts if nothing has to be written, else None."""
    counts = Counts()
    known = _stored_files(connection)
    seen: set[str] = set()
    for root, discovery in found:
        members: dict[int, str] = {}
        for file in discovery.files:
            stored = known.get(os.fsencode(file.path))
            if stored is None or not stored.is_current(file):
                return None
            members[stored.id] = file.shown
            if file.path not in seen:
                counts.count_unchanged(file, stored)
            seen.add(file.path)
        root_id = _root_id(connection, root)
        if root_id is None or _members(connection, root_id) != members:
            return None
        counts.skipped += discovery.skipped
    return counts


def forget_roots(connection: sqlite3.Connection, roots: Sequence[Root]) -> int:
    """Takes roots and what only they held out of the index; returns how many files were removed.

    Raises RetrievalError for a root that is not in it.
    """
    scope_of(connection, roots)
    with writing(connection):
        for root in roots:
            root_id = _root_id(connection, root)
            connection.execute("DELETE FROM member WHERE root_id = ?", (root_id,))
            connection.execute("DELETE FROM root WHERE id = ?", (root_id,))
        return _remove_orphans(connection)


class IndexWriter:
    """Used inside `writing`. Only files under the roots that it is given are touched."""

    def __init__(self, connection: sqlite3.Connection, converter: Converter) -> None:
        self.counts = Counts()
        self._connection = connection
        self._converter = converter
        self._known = _stored_files(connection)
        rows = "SELECT language, count(*) FROM file WHERE chunks > 0 GROUP BY language"
        self._languages = Counter(dict(connection.execute(rows)))

    def update(self, found: Sequence[tuple[Root, Discovery]], progress: Progress | None) -> Counts:
        done: set[str] = set()
        total = sum(len(discovery.files) for _, discovery in found)
        for root, discovery in found:
            members: dict[int, str] = {}
            for number, file in enumerate(discovery.files, len(done) + 1):
                if file.path not in done:
                    self._update_file(file)
                    done.add(file.path)
                if (stored := self._known.get(os.fsencode(file.path))) is not None:
                    members[stored.id] = file.shown
                if progress is not None:
                    progress(number, total)
            self.counts.skipped += discovery.skipped
            self._update_members(root, members)
        self.counts.removed += _remove_orphans(self._connection)
        return self.counts

    def _update_members(self, root: Root, members: dict[int, str]) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO root (path) VALUES (?)", (os.fsencode(root),)
        )
        root_id = _root_id(self._connection, root)
        before = _members(self._connection, root_id)
        self._connection.executemany(
            "DELETE FROM member WHERE root_id = ? AND file_id = ?",
            [(root_id, gone) for gone in before.keys() - members.keys()],
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO member VALUES (?, ?, ?)",
            [(root_id, file_id, shown) for file_id, shown in members.items() - before.items()],
        )

    def _update_file(self, file: FoundFile) -> None:
        key = os.fsencode(file.path)
        stored = self._known.get(key)
        if stored is not None and stored.is_current(file):
            self.counts.count_unchanged(file, stored)
            return
        digest = b""
        document: Document | None = None
        reason: str | None = None
        try:
            extension = file.extension or extension_of(file.path)
            refuse_unreadable(extension)
            data = self._content(file, extension)
            digest = hashlib.blake2b(data, digest_size=16).digest()
            if stored is not None and stored.digest == digest:
                self._connection.execute(
                    "UPDATE file SET mtime_ns = ?, ctime_ns = ?, size = ?, read_at = ? "
                    "WHERE id = ?",
                    (*_settled(file), _read_at(file), stored.id),
                )
                self.counts.count_unchanged(file, stored)
                return
            document = parse(extension, data, self._converter, self._majority())
        except UnusableError as exc:
            reason = str(exc)
            self.counts.skipped.append((file.shown, reason))
            if isinstance(exc, UnreadableError):
                self._known.pop(key, None)  # no member any more: removed as if it were gone
                return
        if document is not None:
            was_searched = stored is not None and stored.skipped is None
            self.counts.changed += was_searched
            self.counts.added += not was_searched
            if document.guessed:
                self.counts.guessed.append((file.shown, document.guessed))
        if stored is not None:
            _delete_chunks(self._connection, stored.id)
        guessed = document.guessed if document else None
        file_id: int = self._connection.execute(
            "INSERT OR REPLACE INTO file "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '', ?) RETURNING id",
            (stored.id if stored else None, key, *_settled(file), digest,
             document.language if document else "", guessed, reason, _read_at(file)),
        ).fetchone()[0]  # fmt: skip
        if document is not None and document.chunks:
            self._languages[document.language] += 1
            self._insert_chunks(file_id, file, document)
        self._known[key] = StoredFile(file_id, file.stamp, digest, guessed, reason)

    def _majority(self) -> str:
        """The language of most files so far."""
        return max(self._languages, key=lambda each: self._languages[each], default="en")

    def _content(self, file: FoundFile, extension: str) -> bytes:
        if file.data is not None:
            return file.data
        converted = convertible(extension)
        return file_bytes(file.path, self._converter.bounds.file_bytes if converted else MAX_BYTES)

    def _insert_chunks(self, file_id: int, file: FoundFile, document: Document) -> None:
        language = document.language
        # A file is also found by its name: often nothing else names its subject.
        stem = PurePath(file.shown).stem
        name = [term for term in terms(stem, language) if not term.isdigit()]
        length = 0
        versions: set[str] = set()
        before = ""
        for chunk in document.chunks:
            above, _, title = chunk.heading.rpartition(" > ")
            if chunk.heading == before:  # a section is opened by its first part
                above, title = chunk.heading, ""
            before = chunk.heading
            heading = terms(title, language)
            trail = dict.fromkeys([*terms(above, language), *name])
            version = version_in(chunk.heading, stem)
            versions.add(version)
            body = terms(chunk.text, language)
            length += len(body)
            row = self._connection.execute(
                "INSERT INTO chunk VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (file_id, chunk.line, chunk.end_line, chunk.page, chunk.heading, chunk.text,
                 zlib.crc32(chunk.text.encode()), digest_of(chunk.heading, chunk.text), version),
            )  # fmt: skip
            self._connection.execute(
                "INSERT INTO term (rowid, heading, trail, body) VALUES (?, ?, ?, ?)",
                (row.lastrowid, " ".join(heading), " ".join(trail), " ".join(body)),
            )
        self._connection.execute(
            "UPDATE file SET chunks = ?, terms = ?, versions = ? WHERE id = ?",
            (len(document.chunks), length, " ".join(sorted(versions)).strip(), file_id),
        )


def embedded_text(heading: str, text: str) -> str:
    """What a vector is made of."""
    return f"{heading}\n{text}" if heading else text


def digest_of(heading: str, text: str) -> bytes:
    return hashlib.sha256(embedded_text(heading, text).encode()).digest()[:16]


def _stored_files(connection: sqlite3.Connection) -> dict[bytes, StoredFile]:
    rows = connection.execute(
        "SELECT path, id, mtime_ns, ctime_ns, size, digest, guessed, skipped FROM file"
    )
    return {
        path: StoredFile(id, Stamp(mtime, ctime, size), digest, guessed, skipped)
        for path, id, mtime, ctime, size, digest, guessed, skipped in rows
    }


def _root_id(connection: sqlite3.Connection, root: Root) -> int | None:
    row = connection.execute("SELECT id FROM root WHERE path = ?", (os.fsencode(root),)).fetchone()
    return row[0] if row else None


def _members(connection: sqlite3.Connection, root_id: int | None) -> dict[int, str]:
    """Of a root: files by their ids, each with its path as shown."""
    return dict(
        connection.execute("SELECT file_id, shown FROM member WHERE root_id = ?", (root_id,))
    )


def _settled(file: FoundFile) -> tuple[int, int, int]:
    """The stamp to remember; one that cannot be relied on is remembered as none."""
    stamp = file.stamp
    if file.data is None and time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) < _UNSETTLED_NS:
        return 0, 0, stamp.size
    return stamp.mtime_ns, stamp.ctime_ns, stamp.size


def _read_at(file: FoundFile) -> int:
    """Seconds since 1970."""
    at_ns = time.time_ns() if file.data is None else file.stamp.mtime_ns
    return at_ns // 1_000_000_000


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
