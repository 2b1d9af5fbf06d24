"""The document index: SQLite FTS5 over chunks, kept in step with the files.

One `Index` may be used from several threads: its reading connection is used under a lock, and
every update opens a connection of its own. Do not take one across a fork.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from unified_flow.config.document_roots import (
    DEFAULT_COLLECTION,
    Root,
    own_folders,
    resolved,
    without_links,
)
from unified_flow.errors import InputError, RetrievalError
from unified_flow.errors.sqlite import is_broken
from unified_flow.lib.printable import printable
from unified_flow.retrieval import store
from unified_flow.retrieval.index_reader import IndexReader, Search, remembered, verified
from unified_flow.retrieval.index_update import UpdateOptions, refresh
from unified_flow.retrieval.index_writer import IndexReport, Progress, forget_roots
from unified_flow.turns.passage import Passage

SUFFIX = ".sqlite3"


class Index:
    """`Index.open(folder)` is the collection `documents` in that folder.

    A collection is one SQLite file with any number of roots. A search sees the roots of the
    index object only: those that the last `update(paths)` named or `within(paths)` chose, else
    all that the collection remembers.
    """

    def __init__(self, path: Path, roots: Sequence[Root] | None) -> None:
        self.path = path
        self._roots = roots
        self._lock = threading.RLock()
        self._reader: IndexReader | None = None

    @classmethod
    def open(cls, folder: Path, collection: str = DEFAULT_COLLECTION) -> Self:
        """Touches nothing yet: `update` creates the file, `search` needs it."""
        if not re.fullmatch(r"\w[\w.-]{0,63}", collection):
            raise InputError(
                f"A collection cannot be called {collection[:80]!r}",
                field="collection",
                hint="Use up to 64 letters, digits, dots, hyphens and underscores.",
            )
        return cls(folder / f"{collection}{SUFFIX}", None)

    def within(self, paths: Iterable[Path | str]) -> Index:
        """The same collection seen through some of its roots. InputError if one is not there."""
        return Index(self.path, resolved(paths))

    def close(self) -> None:
        with self._lock:
            if self._reader is not None:
                self._reader.connection.close()
                self._reader = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_read_only(self) -> bool:
        """Whether it is there and can only be searched as it is."""
        return self.path.exists() and not store.is_writable(self.path)

    # Writing

    def update(
        self,
        paths: Iterable[Path | str] | None = None,
        options: UpdateOptions | None = None,
        *,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Reads what changed under `paths` (None: under the roots of this index) and no more.

        All or nothing: one transaction, so that a search sees the old index or the new one. The
        index itself is left out. Raises InputError for a path that does not exist, and
        RetrievalError.
        """
        roots = self._roots if paths is None else resolved(paths)
        options = options or UpdateOptions()
        options = replace(options, exclude=options.exclude | own_folders(self.path))
        with store.index_failures(self.path, partial(self._hint, roots)):
            store.create_file(self.path)
            if options.rebuild or not self.path.stat().st_size:
                self.close()  # our own reader of what was there before would be in the way
            try:
                report = self._refresh_files(roots, options, progress)
            except sqlite3.DatabaseError as exc:
                if not (options.rebuild and is_broken(exc)):
                    raise
                self.close()
                store.delete_files(self.path)
                store.create_file(self.path)
                report = self._refresh_files(roots, replace(options, rebuild=False), progress)
            if not report.chunks:
                store.delete_if_new(self.path)
        self._roots = roots
        self.close()  # what the reader has learnt is of other roots
        return report

    def forget(self, paths: Iterable[Path | str]) -> int:
        """Takes roots out, whether or not they are there; how many files went with them. Raises
        RetrievalError for a root that the index does not have."""
        with self._writing() as connection:
            return forget_roots(connection, [without_links(path) for path in paths])

    def _refresh_files(
        self, roots: Sequence[Root] | None, options: UpdateOptions, progress: Progress | None
    ) -> IndexReport:
        with closing(store.connect(self.path, read_only=False)) as connection:
            return refresh(connection, roots, options, progress)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with (
            store.index_failures(self.path, self._hint),
            closing(store.connect(self.path, read_only=False)) as connection,
        ):
            yield connection

    # Reading

    def search(
        self, query: str, limit: int = 8, conversation: Mapping[str, float] | None = None
    ) -> list[Passage]:
        """The passages that share most with the question, in the order of
        `IndexReader.passages`; [] if none shares a term.

        `conversation` gives words of earlier turns, each with what it weighs beside a word of the
        question; they count as far as the question seems to lean on them (`conversation.heed`).
        `score` is what bm25.score says. Raises RetrievalError for an index that is missing,
        broken, locked or unreadable, or was made by another version.
        """
        with self.found(query, limit, conversation) as (reader, found):
            return [passage for passage, _ in reader.passages(found.ordered, limit)]

    @contextmanager
    def found(
        self, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> Iterator[tuple[IndexReader, Search]]:
        """The steps of a search, and the reader that knows what they speak of."""
        with self.reading() as reader:
            yield reader, reader.found(query, limit, conversation)

    def counts(self) -> tuple[int, int]:
        """(files, chunks) that a search can return."""
        with self.reading() as reader:
            files = reader.connection.execute(
                f"SELECT count(*) FROM file WHERE skipped IS NULL {reader.scope.restriction}"
            ).fetchone()[0]
            return files, reader.corpus.size

    def roots(self) -> list[Root]:
        """What this index searches: its own roots, or all that the collection remembers."""
        if (own := self._roots) is not None:
            return list(own)
        if not self.path.exists():
            return []
        with self.reading() as reader:
            return remembered(reader.connection)

    def check(self) -> None:
        """Reads the whole index; RetrievalError if any of it is damaged. Takes its time."""
        with self.reading() as reader:
            found = reader.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)
            for row in reader.connection.execute("SELECT text, checksum FROM chunk"):
                verified(*row)
        if self.is_read_only:
            return  # FTS5's own check is a way of writing
        with self._writing() as connection:
            connection.execute("INSERT INTO term (term) VALUES ('integrity-check')")

    @contextmanager
    def reading(self) -> Iterator[IndexReader]:
        """The reader, within one transaction, so that all it reads is of one state."""
        with self._lock, store.index_failures(self.path, self._hint):
            reader = self._connected()
            reader.connection.execute("BEGIN")
            try:
                self._learn(reader)
                yield reader
            finally:
                reader.connection.rollback()

    def _connected(self) -> IndexReader:
        try:
            state = self._state()
        except FileNotFoundError as exc:
            self.close()
            raise RetrievalError(
                f"There is no document index at {self.path}",
                hint=f"Make one: unified-flow index {self._shell_roots(None)}",
            ) from exc
        if self._reader is not None and self._reader.state != state:
            self.close()  # built anew by another process
        if self._reader is None:
            connection = store.connect(self.path, read_only=True)
            self._reader = IndexReader(connection, state)
        return self._reader

    def _state(self) -> tuple[int, ...]:
        """What tells one state of the index from another: which file it is; where SQLite cannot
        tell that it changed (it was read-only when it was opened), as which it was written."""
        status = self.path.stat()
        if (self._reader is None or len(self._reader.state) > 1) and self.is_read_only:
            return status.st_ino, status.st_mtime_ns, status.st_size
        return (status.st_ino,)

    def _learn(self, reader: IndexReader) -> None:
        now = reader.connection.execute("PRAGMA data_version").fetchone()[0]
        if now == reader.data_version:
            return  # nobody has written since
        if store.is_new(reader.connection):
            raise RetrievalError(
                f"The document index {self.path} is empty: indexing never completed",
                hint=self._hint(),
            )
        if store.stored(reader.connection, "version") != store.version():
            raise RetrievalError(
                f"The document index {self.path} was made by another version of unified-flow",
                hint=f"Build it anew: unified-flow index {self._shell_roots(None)}",
            )
        reader.learn(self._roots)
        reader.data_version = now

    def _hint(self, roots: Sequence[Root] | None = None) -> str:
        return f"Build it anew: unified-flow index --rebuild {self._shell_roots(roots)}"

    def _shell_roots(self, roots: Sequence[Root] | None) -> str:
        named = roots or self._roots
        return shlex.join(printable(str(root)) for root in named) if named else "PATH"
