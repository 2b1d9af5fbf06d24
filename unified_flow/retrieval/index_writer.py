"""Bringing the index in line with the files: only what changed is read and written."""

from __future__ import annotations

import os
import pickle
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, field
from functools import cached_property

from unified_flow.config.document_roots import Root
from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import InputError
from unified_flow.lib.sandbox import SandboxLimits, UnusableError
from unified_flow.lib.text import language_of_document
from unified_flow.retrieval.discovery import SECRET, Discovery, FoundFile, Stamp
from unified_flow.retrieval.file_reading import (
    Changed,
    ReadFile,
    content_of,
    format_of,
    read_files,
)
from unified_flow.retrieval.formats.document import MAX_BYTES, Remarks, can_be_read_now, convertible
from unified_flow.retrieval.formats.encoding import decode
from unified_flow.retrieval.index_reader import scope_of

Progress = Callable[..., None]
"""Called with (files done, files in all), or with numbers of other things and what is done."""

# A file written this shortly before it is read may change again within one tick of its clock.
_UNSETTLED_NS = 50_000_000
_SAMPLED = 100  # files of a new index
_IN_MEMORY = 8 * 1024 * 1024  # bytes that are read ahead


Found = Sequence[tuple[Root, Discovery]]
Told = tuple[tuple[str, str], ...]
"""(path, what is said of it), in order."""


@dataclass(frozen=True)
class StoredFile:
    """What the index knows of a file."""

    id: int
    stamp: Stamp
    digest: bytes
    remarks: Remarks

    def is_current(self, file: FoundFile) -> bool:
        if (skipped := self.remarks.skipped) is not None:
            is_meant = file.is_named and skipped.startswith(SECRET)
            if is_meant or can_be_read_now(file.path, skipped):
                return False
        return self.stamp == file.stamp


@dataclass
class IndexReport:
    """Files added, changed, removed and unchanged; `chunks` is what a search can now return of the
    `roots`; `remarks` are those on the files, by their paths."""

    roots: tuple[str, ...] = ()
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    chunks: int = 0
    remarks: set[tuple[str, Remarks]] = field(default_factory=set)
    duration_ms: float = 0.0

    @property
    def files(self) -> int:
        """Documents in the index under these roots."""
        return self.added + self.changed + self.unchanged

    @property
    def skipped(self) -> Told:
        """Everything that was found and cannot be searched, with the reason."""
        return tuple(sorted((path, each.skipped) for path, each in self.remarks if each.skipped))

    @property
    def guessed(self) -> Told:
        """Text whose encoding nothing declares, with the encoding."""
        return tuple(sorted((path, each.guessed) for path, each in self.remarks if each.guessed))

    @property
    def unread(self) -> Told:
        """Documents that are read, and not as a whole, with what is not."""
        known = ((path, each.unread) for path, each in self.remarks if not each.skipped)
        return tuple(sorted((path, unread) for path, unread in known if unread))

    def skip(self, skipped: Iterable[tuple[str, str]]) -> None:
        self.remarks.update((path, Remarks(reason)) for path, reason in skipped)

    def keep(self, file: FoundFile, stored: StoredFile) -> None:
        """A file that is as it was."""
        self.unchanged += stored.remarks.skipped is None
        self.remarks.add((file.shown, stored.remarks))

    def require_documents(self) -> None:
        """InputError if there is nothing to search under the roots."""
        if self.chunks:
            return
        where = ", ".join(self.roots)
        reasons = "; ".join(f"{path}: {reason}" for path, reason in self.skipped[:3])
        raise InputError(
            f"No documents to search in {where}" + (f" (skipped {reasons})" if reasons else ""),
            field="docs",
            hint="Name a folder with Markdown, reStructuredText, text, HTML, source or office "
            "files; what git ignores is left out.",
        )


def holds_files_of(connection: sqlite3.Connection, root: Root) -> bool:
    return bool(_members(connection, _root_id(connection, root)))


def forget_roots(connection: sqlite3.Connection, roots: Sequence[Root]) -> int:
    """Takes roots and what only they held out of the index; returns how many files were removed.

    Raises RetrievalError for a root that is not in it.
    """
    scope_of(connection, roots)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for root in roots:
            root_id = _root_id(connection, root)
            connection.execute("DELETE FROM member WHERE root_id = ?", (root_id,))
            connection.execute("DELETE FROM root WHERE id = ?", (root_id,))
            # A file that was named may hold secrets: another root has to judge it anew.
            again = "UPDATE file SET mtime_ns = 0, digest = x'' WHERE path = ?"
            connection.execute(again, (os.fsencode(root),))
        return _remove_orphans(connection)


class IndexWriter:
    """`read_ahead` comes before the transaction that `update` is in. Only what is `found` is
    touched. `anew`: nothing that the index holds counts. Close it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        found: Found,
        bounds: SandboxLimits,
        reading: DocumentSettings,
        *,
        anew: bool = False,
    ) -> None:
        self.report = IndexReport()
        self._found = found
        self._files: dict[str, FoundFile] = {}
        for _, discovery in found:
            for file in discovery.files:  # of several roots, as the first has it
                self._files.setdefault(file.path, file)
        self._reading = reading
        self._connection = connection
        self._bounds = bounds
        self._known = {} if anew else _stored_files(connection)
        # What is read ahead, by its place in a file, which has no name and is one where it is much.
        self._ahead: dict[Changed, int] = {}
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 -- `close`

    def close(self) -> None:
        self._file.close()

    def is_current(self, progress: Progress | None) -> bool:
        """Whether nothing has to be written, as the report then says."""
        if self._changed() or not all(
            (root_id := _root_id(self._connection, root)) is not None
            and _members(self._connection, root_id) == self._members(discovery)
            for root, discovery in self._found
        ):
            return False
        for file in self._files.values():
            self.report.keep(file, self._known[file.path])
        for _, discovery in self._found:
            self.report.skip(discovery.skipped)
        if progress is not None:
            progress(len(self._files), len(self._files))
        return True

    def read_ahead(self, progress: Progress | None) -> None:
        """Documents that are converted, which takes long, and longer with OCR: nobody is to wait
        for a lock meanwhile."""
        changed = [
            each
            for each in self._changed().values()
            if convertible(format_of(each[0], self._reading))
        ]
        with closing(self._read(changed)) as reading:
            for number, (file, read) in enumerate(zip(changed, reading, strict=True), 1):
                self._ahead[file] = self._file.tell()
                pickle.dump(read, self._file)
                if progress is not None:
                    progress(number, len(changed), "reading documents")

    def update(self, progress: Progress | None) -> None:
        self._known = _stored_files(self._connection)  # others may have written since
        changed = self._changed()
        with closing(self._read([c for c in changed.values() if c not in self._ahead])) as reading:
            for number, file in enumerate(self._files.values(), 1):
                if each := changed.get(file.path):
                    if each in self._ahead:
                        self._file.seek(self._ahead[each])
                        read: ReadFile = pickle.load(self._file)
                    else:
                        read = next(reading)
                    self._update_file(file, read)
                else:
                    self.report.keep(file, self._known[file.path])
                if progress is not None:
                    progress(number, len(self._files))
        for root, discovery in self._found:
            self.report.skip(discovery.skipped)
            self._update_members(root, self._members(discovery))
        self.report.removed += _remove_orphans(self._connection)

    def _changed(self) -> dict[str, Changed]:
        """The files that the index does not hold as they are, by their paths."""
        stored = ((file, self._known.get(file.path)) for file in self._files.values())
        return {
            file.path: (file, known.digest if known and not known.remarks.skipped else None)
            for file, known in stored
            if not (known and known.is_current(file))
        }

    def _read(self, changed: Sequence[Changed]) -> Generator[ReadFile]:
        return read_files(changed, self._bounds, self._reading, self._language if changed else "")

    def _members(self, discovery: Discovery) -> dict[int, str]:
        """Files that the index holds by their ids, each with its path as shown."""
        return {
            self._known[file.path].id: file.shown
            for file in discovery.files
            if file.path in self._known
        }

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

    def _update_file(self, file: FoundFile, read: ReadFile) -> None:
        stored = self._known.get(file.path)
        if stored is not None and read.is_known:
            self._connection.execute(
                "UPDATE file SET mtime_ns = ?, ctime_ns = ?, size = ?, read_at = ? WHERE id = ?",
                (*_settled(file, read), _read_at(file, read), stored.id),
            )
            self.report.keep(file, stored)
            return
        self.report.remarks.add((file.shown, read.remarks))
        if read.remarks.skipped is not None:
            if not read.is_readable:
                self._known.pop(file.path, None)  # no member any more: removed as if it were gone
                return
        else:
            was_searched = stored is not None and stored.remarks.skipped is None
            self.report.changed += was_searched
            self.report.added += not was_searched
        if stored is not None:
            _delete_chunks(self._connection, stored.id)
        terms = sum(len(body.split()) for _, (_, _, body) in read.chunks)
        versions = sorted({str(row[-1]) for row, _ in read.chunks} - {""})
        file_id: int = self._connection.execute(
            "INSERT OR REPLACE INTO file "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (stored.id if stored else None, os.fsencode(file.path), *_settled(file, read),
             read.digest, read.language, *astuple(read.remarks), len(read.chunks), terms,
             " ".join(versions), _read_at(file, read)),
        ).fetchone()[0]  # fmt: skip
        for row, fields in read.chunks:
            id = self._connection.execute(
                "INSERT INTO chunk VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (file_id, *row)
            ).lastrowid
            self._connection.execute(
                "INSERT INTO term (rowid, heading, trail, body) VALUES (?, ?, ?, ?)", (id, *fields)
            )
        self._known[file.path] = StoredFile(file_id, file.stamp, read.digest, read.remarks)

    @cached_property
    def _language(self) -> str:
        """The language of files that do not tell their own: the one that is set, else that of most
        files, of which a sample speaks where the index is new."""
        if self._reading.language is not None:
            return self._reading.language
        rows = "SELECT language, count(*) FROM file WHERE chunks > 0 GROUP BY language"
        languages = Counter(dict(self._connection.execute(rows) if self._known else ()))
        files = list(self._files.values())
        for file in files[:: len(files) // _SAMPLED + 1] if not languages else ():
            with suppress(OSError, UnusableError):
                text = decode(content_of(file, MAX_BYTES)).text
                languages[language_of_document(text, "")] += 1
        del languages[""]
        return languages.most_common(1)[0][0] if languages else "en"


def _stored_files(connection: sqlite3.Connection) -> dict[str, StoredFile]:
    """The files of the index, by their paths."""
    rows = connection.execute(
        "SELECT path, id, mtime_ns, ctime_ns, size, digest, skipped, guessed, unread FROM file"
    )
    return {
        os.fsdecode(path): StoredFile(id, Stamp(mtime, ctime, size), digest, Remarks(*remarks))
        for path, id, mtime, ctime, size, digest, *remarks in rows
    }


def _root_id(connection: sqlite3.Connection, root: Root) -> int | None:
    row = connection.execute("SELECT id FROM root WHERE path = ?", (os.fsencode(root),)).fetchone()
    return row[0] if row else None


def _members(connection: sqlite3.Connection, root_id: int | None) -> dict[int, str]:
    """The files of a root by their ids, each with its path as shown."""
    return dict(
        connection.execute("SELECT file_id, shown FROM member WHERE root_id = ?", (root_id,))
    )


def _settled(file: FoundFile, read: ReadFile) -> Stamp:
    """The stamp to remember; one that cannot be relied on is remembered as none."""
    stamp = file.stamp
    if file.data is None and read.at_ns - max(stamp.mtime_ns, stamp.ctime_ns) < _UNSETTLED_NS:
        return Stamp(0, 0, stamp.size)
    return stamp


def _read_at(file: FoundFile, read: ReadFile) -> int:
    """Seconds since 1970."""
    return (read.at_ns if file.data is None else file.stamp.mtime_ns) // 1_000_000_000


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
