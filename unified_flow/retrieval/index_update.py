"""One update of an index: its roots and the files under them."""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeGuard

from unified_flow.config.document_roots import Root, folders_of
from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import RetrievalError
from unified_flow.lib.clock import elapsed_ms
from unified_flow.lib.printable import printable
from unified_flow.lib.sandbox import SandboxLimits
from unified_flow.retrieval import store
from unified_flow.retrieval.discovery import discover, meant
from unified_flow.retrieval.index_reader import remembered, scope_of, totals
from unified_flow.retrieval.index_writer import (
    IndexReport,
    IndexWriter,
    Progress,
    holds_files_of,
)
from unified_flow.retrieval.web_pages import Fetch, page_as_file, store_page


@dataclass(frozen=True)
class UpdateOptions:
    """`exclude` are files and folders to leave out, `bounds` those of converting a document. With
    another `reading` than before all is read again, as to `rebuild`. `fetch` gets web pages, those
    that are known too if `fetch_again`."""

    exclude: frozenset[Path] = frozenset()
    reading: DocumentSettings = field(default_factory=DocumentSettings)
    bounds: SandboxLimits = field(default_factory=SandboxLimits)
    fetch: Fetch | None = None
    fetch_again: bool = False
    rebuild: bool = False


def refresh(
    connection: sqlite3.Connection,
    roots: Sequence[Root] | None,
    options: UpdateOptions,
    progress: Progress | None,
) -> IndexReport:
    """Bring the index up to date with these roots, or all that are remembered. Raises
    sqlite3.Error, and the transaction is then undone; RetrievalError for a root that is remembered
    and not there: that is no deletion of what lies under it."""
    started = time.perf_counter()
    is_new = store.is_new(connection)
    reading = options.reading.model_dump_json()
    is_rebuilt = options.rebuild or _is_outdated(connection, reading)
    known = [] if is_new else remembered(connection)
    named = list(known if roots is None else roots)
    folders = folders_of(named)
    below = [root for root in known if _is_file(root) and any(map(root.is_relative_to, folders))]
    everything = list(dict.fromkeys([*named, *below]))
    if not is_new and (gone := [root for root in named if not _is_there(root, connection)]):
        shown = [printable(str(root)) for root in gone]
        raise RetrievalError(
            f"what was indexed is not there any more: {', '.join(shown)}",
            hint="Bring it back (was it renamed or emptied, is a disk not mounted?), or take it out"
            f" of the index: unified-flow index --delete {shlex.join(shown)}",
        )
    if is_rebuilt:  # what the other roots held goes as well, so it has to come back
        others = [root for root in known if _is_there(root, connection)]
        everything = list(dict.fromkeys([*everything, *others]))
    everything.sort(key=_is_file, reverse=True)  # who names a file means it, whatever it holds
    exclude = options.exclude | meant(everything)
    fetched = partial(page_as_file, connection, fetch=options.fetch, again=options.fetch_again)
    found = [
        (root, discover(root, exclude) if isinstance(root, Path) else fetched(root))
        for root in everything
    ]
    writer = IndexWriter(connection, found, options.bounds, options.reading, anew=is_rebuilt)
    with closing(writer):
        report = writer.report
        if is_rebuilt or not writer.is_current(progress):
            writer.read_ahead(progress)
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                if options.rebuild or _is_outdated(connection, reading):
                    store.create_tables(connection, reading)
                for root, each in found:
                    for page in each.files if not isinstance(root, Path) else ():
                        store_page(connection, page)
                writer.update(progress)
                report.chunks, _ = totals(connection, scope_of(connection, named))
                if not report.chunks and not set(named) & set(known):
                    connection.rollback()  # a mistake is not remembered
        else:
            report.chunks, _ = totals(connection, scope_of(connection, named))
    lost = [root for root in known if is_rebuilt and root not in everything]
    report.skip((printable(str(root)), "not there, so no longer indexed") for root in lost)
    report.roots = tuple(printable(str(root)) for root in named)
    report.duration_ms = elapsed_ms(started)
    return report


def _is_file(root: Root) -> TypeGuard[Path]:
    """A file that is gone counts as long as its folder is there."""
    return isinstance(root, Path) and root.parent.is_dir() and not root.is_dir()


def _is_there(root: Root, connection: sqlite3.Connection) -> bool:
    """A folder that is empty and was not may be where a disk is not mounted."""
    if not isinstance(root, Path):
        return True
    with suppress(OSError):
        if not any(root.iterdir()):
            return not holds_files_of(connection, root)
    return root.exists()


def _is_outdated(connection: sqlite3.Connection, reading: str) -> bool:
    return (
        store.is_new(connection)
        or store.stored(connection, "version") != store.version()
        or store.stored(connection, "reading") != reading
    )
