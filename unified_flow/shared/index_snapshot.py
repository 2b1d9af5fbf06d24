"""The document index that all workers search: published by `unified-flow index`, copied by each.

A snapshot is the index's SQLite file in chunks. There is one for each version of the index's
format, so that in a rolling upgrade old and new workers each find theirs.
"""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock
from psycopg.rows import class_row

from interventions.home import make_private_folder
from unified_flow.errors import RetrievalError
from unified_flow.shared.database import Connection, Database

CHUNK_BYTES = 1 << 20
COPIES = 2  # on a machine: another process may still search the one before
VERSIONS = 2  # of the format that are kept in the database, the newest snapshot of each
_UNFINISHED = ".unfinished-"
_PUBLISHING = 7166453  # advisory lock: one snapshot of a collection is published at a time
_COLUMNS = "snapshot_id, collection, digest, size_bytes, published_at, published_by"


@dataclass(frozen=True)
class Snapshot:
    """`digest` is the SHA-256 of the whole file."""

    snapshot_id: int
    collection: str
    digest: bytes
    size_bytes: int
    published_at: datetime
    published_by: str

    def __str__(self) -> str:
        return f"{self.size_bytes / 1e6:.1f} MB of the collection {self.collection}"


@dataclass(frozen=True)
class PublishedIndex:
    """One collection in the form `version`, and this machine's copies of it below `folder`."""

    database: Database
    folder: Path
    collection: str
    version: str

    def newest(self) -> Snapshot | None:
        """None if nothing is published. Raises DatabaseAwayError, as all methods do."""
        return self.database.run(self._newest)

    def current(self) -> Snapshot:
        """The newest. Raises RetrievalError if nothing is published."""
        return self._required(self.newest())

    def publish(self, index: Path) -> Snapshot | None:
        """The state of the file `index`, for all workers; None if that is published already.

        Raises sqlite3.Error.
        """
        make_private_folder(self.folder)
        with TemporaryDirectory(dir=self.folder, prefix=_UNFINISHED) as unfinished:
            file = Path(unfinished) / index.name
            with closing(sqlite3.connect(index)) as connection:
                connection.execute("VACUUM INTO ?", (str(file),))
            with file.open("rb") as made:
                digest = file_digest(made, "sha256").digest()
            return self.database.run(partial(self._insert, file, digest))

    def _insert(self, file: Path, digest: bytes, connection: Connection) -> Snapshot | None:
        lock = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
        connection.execute(lock, (_PUBLISHING, self.collection))
        sql = (
            "INSERT INTO index_snapshots (collection, version, digest, size_bytes, published_by)"
            f" VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"
        )
        row = (self.collection, self.version, digest, file.stat().st_size, socket.gethostname())
        snapshot = connection.cursor(row_factory=class_row(Snapshot)).execute(sql, row).fetchone()
        if snapshot is None:
            return None
        with file.open("rb") as source:
            parts = enumerate(iter(partial(source.read, CHUNK_BYTES), b""))
            chunks = ((snapshot.snapshot_id, number, data) for number, data in parts)
            connection.cursor().executemany("INSERT INTO index_chunks VALUES (%s, %s, %s)", chunks)
        connection.execute(
            "DELETE FROM index_snapshots"
            " WHERE collection = %(collection)s AND snapshot_id NOT IN ("
            " SELECT max(snapshot_id) FROM index_snapshots WHERE collection = %(collection)s"
            " GROUP BY version ORDER BY 1 DESC LIMIT %(versions)s)",
            {"collection": self.collection, "versions": VERSIONS},
        )
        return snapshot

    def local_copy(self) -> Path:
        """A read-only file with the newest snapshot, fetched if it is not here yet.

        Raises RetrievalError if nothing is published or the copy is damaged.
        """
        copy = self._copy_of(self.current())
        if not copy.exists():
            make_private_folder(self.folder)
            with FileLock(self.folder / ".fetching.lock", mode=0o600):
                if not copy.exists():
                    copy = self.database.run(self._fetch)
        return copy

    def _copy_of(self, snapshot: Snapshot) -> Path:
        return self.folder / f"{self.collection}-{snapshot.digest.hex()[:16]}.sqlite3"

    def _fetch(self, connection: Connection) -> Path:
        # Else the one that was the newest may be gone with all its chunks by then.
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        snapshot = self._required(self._newest(connection))
        copy = self._copy_of(snapshot)
        with TemporaryDirectory(dir=self.folder, prefix=_UNFINISHED) as unfinished:
            file = Path(unfinished) / copy.name
            query = "SELECT data FROM index_chunks WHERE snapshot_id = %s ORDER BY number"
            with file.open("w+b") as target, connection.cursor("chunks") as chunks:
                chunks.itersize = 1  # for an index may be large
                target.writelines(data for (data,) in chunks.execute(query, [snapshot.snapshot_id]))
                target.seek(0)
                digest = file_digest(target, "sha256").digest()
            if digest != snapshot.digest:
                raise RetrievalError(
                    f"Snapshot {snapshot.snapshot_id} of the index is not as it was published",
                    hint="Publish it anew: unified-flow index --rebuild FOLDER",
                )
            file.chmod(0o400)
            file.replace(copy)
        mine = sorted(
            self.folder.glob(f"{self.collection}-{'?' * 16}.sqlite3"),
            key=lambda each: each.stat().st_mtime,
        )
        for old in mine[:-COPIES]:
            old.unlink(missing_ok=True)
        return copy

    def _required(self, snapshot: Snapshot | None) -> Snapshot:
        if snapshot is None:
            raise RetrievalError(
                f"No index of the collection {self.collection!r} is published for this version",
                hint="Publish one: unified-flow index FOLDER",
            )
        return snapshot

    def _newest(self, connection: Connection) -> Snapshot | None:
        with connection.cursor(row_factory=class_row(Snapshot)) as cursor:
            return cursor.execute(
                f"SELECT {_COLUMNS} FROM index_snapshots WHERE collection = %s AND version = %s"
                " ORDER BY snapshot_id DESC LIMIT 1",
                (self.collection, self.version),
            ).fetchone()


def is_published(database: Database, collection: str) -> bool:
    """Whether there is a snapshot, in any version of the format."""
    query = "SELECT EXISTS (SELECT FROM index_snapshots WHERE collection = %(collection)s)"
    return bool(database.row(query, collection=collection)[0])


def withdraw(database: Database, collection: str) -> None:
    """Nothing of the collection is published any more; copies that are searched now stay."""
    query = "DELETE FROM index_snapshots WHERE collection = %(collection)s RETURNING 1"
    database.rows(query, collection=collection)
