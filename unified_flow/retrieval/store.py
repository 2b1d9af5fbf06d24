"""The SQLite file of the index: schema, connections, and what its failures mean."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

import snowballstemmer
import stopwordsiso

from interventions.home import create_private, make_private_folder
from unified_flow.errors import sqlite
from unified_flow.lib import text

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE root (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE);
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE,          -- absolute, as the system spells it
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    digest BLOB NOT NULL,
    language TEXT NOT NULL,
    skipped TEXT,                       -- why it has no chunks
    guessed TEXT,                       -- an encoding that nothing declares
    unread TEXT,                        -- what of a document could not be read
    chunks INTEGER NOT NULL,
    terms INTEGER NOT NULL,
    versions TEXT NOT NULL,             -- that its headings name, separated by spaces
    read_at INTEGER NOT NULL            -- seconds since 1970; of a web page, when it was fetched
);
-- A file belongs to every root that it was found under; without one it is deleted.
CREATE TABLE member (
    root_id INTEGER NOT NULL, file_id INTEGER NOT NULL, shown TEXT NOT NULL,
    PRIMARY KEY (root_id, file_id)
) WITHOUT ROWID;
CREATE INDEX member_file ON member (file_id);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,             -- the rowid of `term`
    file_id INTEGER NOT NULL,
    line INTEGER NOT NULL, end_line INTEGER NOT NULL, page INTEGER,
    heading TEXT NOT NULL, text TEXT NOT NULL, checksum INTEGER NOT NULL,
    digest BLOB NOT NULL,               -- of what is embedded, 16 bytes
    continues INTEGER NOT NULL,         -- whether the section of the chunk before it goes on
    version TEXT NOT NULL               -- that its headings name, or ''
);
CREATE INDEX chunk_file ON chunk (file_id);
-- Terms, not text: stemmed and without stop words, separated by spaces. With less than the
-- full detail the index is a third smaller and bm25() takes four times as long.
CREATE VIRTUAL TABLE term USING fts5(
    heading, trail, body, tokenize = "ascii tokenchars '_.'"
);
-- What was fetched stays when the rest is built anew: it need not be there any more.
CREATE TABLE IF NOT EXISTS web_page (
    url BLOB PRIMARY KEY, fetched_ns INTEGER NOT NULL, data BLOB NOT NULL
);
-- So do vectors: the same text is never embedded twice. `data` is float32, of length 1.
CREATE TABLE IF NOT EXISTS vector (
    digest BLOB NOT NULL, model TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (digest, model)
);
"""
BUSY_TIMEOUT_S = 30.0  # how long one writer waits for another
# Earlier versions had a vocabulary.
TABLES = ("vocabulary", "term", "chunk", "member", "file", "root", "meta")


@cache
def version() -> str:
    """Changes with everything that decides what the index holds: an old one is built anew."""
    found = hashlib.blake2b(digest_size=16)
    for file in sorted(deciding_files()):
        found.update(file.read_bytes())
    # importlib.metadata knows their versions, but takes longer than a search.
    for library in (snowballstemmer, stopwordsiso):
        with os.scandir(Path(str(library.__file__)).parent) as entries:
            sizes = sorted((entry.name, entry.stat().st_size) for entry in entries)
        found.update(repr([each for each in sizes if not each[0].startswith("__py")]).encode())
    return found.hexdigest()


def deciding_files() -> list[Path]:
    """Our own code and data that decide what the index holds."""
    retrieval = Path(__file__).parent
    names = ("store.py", "index_writer.py", "file_reading.py")
    files = [*(retrieval / name for name in names), *retrieval.glob("secret_files.*")]
    for folder in (retrieval / "formats", Path(text.__path__[0])):
        files += (file for file in folder.rglob("*") if file.suffix in {".py", ".toml"})
    return files


def index_failures(path: Path, hint: str | Callable[[], str]) -> AbstractContextManager[None]:
    """`hint`: what to do about a broken one."""
    return sqlite.failures(path, "The document index", broken=hint)


def is_writable(path: Path) -> bool:
    """False on a medium that takes nothing, without leave to write there, and for a file that
    nobody may write, root included."""
    marked = path.exists() and not path.stat().st_mode & 0o222
    return not marked and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection to an existing file. Used under a lock, it may go from thread to thread."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{_mode(path) if read_only else 'mode=rw'}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if read_only:
            connection.execute("PRAGMA query_only = 1")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _mode(path: Path) -> str:
    """Where nothing can be written SQLite cannot make the files beside it that it reads a WAL with:
    without a log to read the file is all there is."""
    if is_writable(path):
        return "mode=rw"
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"


def create_file(path: Path) -> None:
    """The folder (0700) and an empty file (0600) if they are not there."""
    make_private_folder(path.parent)
    path.parent.chmod(0o700)
    create_private(path)


def delete_files(path: Path) -> None:
    """The log first: it must never meet a new database of the same name."""
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def delete_if_new(path: Path) -> None:
    """An index that never held anything; it stays while another process has it open."""
    with suppress(sqlite3.OperationalError), closing(connect(path, read_only=False)) as connection:
        # Raises while somebody else has it open.
        if is_new(connection) and connection.execute("PRAGMA journal_mode = DELETE").fetchone():
            delete_files(path)


def size_on_disk(path: Path) -> int:
    """Bytes, the log included."""
    files = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())


def stored(connection: sqlite3.Connection, key: str) -> str:
    """The `version`, and how the files were read (`reading`), as `create_tables` stored them; "" of
    an earlier version. Raises sqlite3.Error for a file without our tables, a broken index."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else ""


def is_new(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def create_tables(connection: sqlite3.Connection, reading: str) -> None:
    """Inside the caller's transaction, so not with executescript."""
    for table in TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in SCHEMA.split(";\n"):
        connection.execute(statement)
    values = (version(), reading)
    connection.execute("INSERT INTO meta VALUES ('version', ?), ('reading', ?)", values)
