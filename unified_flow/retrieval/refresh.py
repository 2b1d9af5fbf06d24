"""One update of a collection: which roots it is about, what is under them, one transaction."""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unified_flow.config.document_roots import Root
from unified_flow.errors import RetrievalError
from unified_flow.lib.sandbox import SandboxLimits
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text.printable import printable
from unified_flow.retrieval import store
from unified_flow.retrieval.discover import Found, discover
from unified_flow.retrieval.document import MAX_BYTES
from unified_flow.retrieval.report import IndexReport
from unified_flow.retrieval.scope import remembered, scope_of, totals
from unified_flow.retrieval.update import (
    Progress,
    bring_up_to_date,
    forget_roots,
    is_current,
    writing,
)
from unified_flow.retrieval.web_pages import Fetch, keep_page, page_as_file


@dataclass(frozen=True)
class Wanted:
    """`roots` None: those that `own` names, else all that are remembered.

    `exclude` are files and folders to leave out; `fetch` gets web pages, those that are known
    too if `fetch_again`.
    """

    roots: Sequence[Root] | None
    own: Sequence[Root] | None = None
    rebuild: bool = False
    exclude: frozenset[Path] = frozenset()
    max_bytes: int = MAX_BYTES
    bounds: SandboxLimits = field(default_factory=SandboxLimits)
    fetch: Fetch | None = None
    fetch_again: bool = False
    progress: Progress | None = None


def refresh(connection: sqlite3.Connection, wanted: Wanted) -> IndexReport:
    """Raises sqlite3.Error, and the transaction is then undone; RetrievalError for a root that is
    remembered and not there: that is no deletion of what lies under it."""
    started = time.perf_counter()
    anew = wanted.rebuild or _is_outdated(connection)
    known = [] if store.is_new(connection) else remembered(connection)
    named = list(wanted.roots if wanted.roots is not None else (wanted.own or known))
    everything = list(named)
    if wanted.roots is None and (gone := [root for root in named if not _is_there(root)]):
        raise _missing(gone)
    if anew:  # what the other roots held goes as well, so it has to come back
        everything = list(dict.fromkeys([*everything, *filter(_is_there, known)]))
    found = [(root, _find(connection, root, wanted)) for root in everything]
    counts = None if anew else is_current(connection, found)
    if counts is None:
        with Converter(wanted.bounds) as converter, writing(connection):
            if wanted.rebuild or _is_outdated(connection):
                store.create_tables(connection)
            for root, each in found:
                for page in each.files if not isinstance(root, Path) else ():
                    keep_page(connection, page)
            counts = bring_up_to_date(
                connection,
                found,
                max_bytes=wanted.max_bytes,
                converter=converter,
                progress=wanted.progress,
            )
    elif wanted.progress is not None:
        files = sum(len(each.files) for _, each in found)
        wanted.progress(files, files)
    lost = [root for root in known if anew and root not in everything]
    counts.skipped += [(printable(str(root)), "not there, so no longer indexed") for root in lost]
    here = scope_of(connection, named)
    return IndexReport(
        roots=tuple(printable(str(root)) for root in named),
        added=counts.added,
        changed=counts.changed,
        removed=counts.removed,
        unchanged=counts.unchanged,
        chunks=totals(connection, here)[0],
        skipped=tuple(sorted(set(counts.skipped))),
        guessed=tuple(sorted(set(counts.guessed))),
        duration_ms=(time.perf_counter() - started) * 1000,
    )


def forget(connection: sqlite3.Connection, roots: Sequence[Root]) -> int:
    """Takes roots out; how many files went with them. RetrievalError for one that is not in it."""
    scope_of(connection, roots)
    with writing(connection):
        return forget_roots(connection, roots)


def _missing(roots: Sequence[Root]) -> RetrievalError:
    shown = [printable(str(root)) for root in roots]
    return RetrievalError(
        f"what was indexed is not there any more: {', '.join(shown)}",
        hint="Bring it back (was it renamed, is a disk not mounted?), or take it out of the index:"
        f" unified-flow index --forget {shlex.join(shown)}",
    )


def _find(connection: sqlite3.Connection, root: Root, wanted: Wanted) -> Found:
    if isinstance(root, Path):
        return discover(root, wanted.exclude)
    return page_as_file(connection, root, wanted.fetch, again=wanted.fetch_again)


def _is_there(root: Root) -> bool:
    return not isinstance(root, Path) or root.exists()


def _is_outdated(connection: sqlite3.Connection) -> bool:
    return store.is_new(connection) or store.stored_version(connection) != store.version()
