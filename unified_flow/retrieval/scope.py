"""Which of the roots in an index a search sees."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unified_flow.config.document_roots import Root, root_from
from unified_flow.errors import RetrievalError
from unified_flow.lib.text.printable import printable


@dataclass(frozen=True)
class Scope:
    """`roots` are ids for SQL, `condition` is SQL on file.id, empty if every file satisfies it;
    `clash` says that two roots have one name, so that only absolute paths tell files apart."""

    roots: str = ""
    condition: str = ""
    clash: bool = False


def remembered(connection: sqlite3.Connection) -> list[Root]:
    rows = connection.execute("SELECT path FROM root ORDER BY id")
    return [root_from(path) for (path,) in rows]


def scope_of(connection: sqlite3.Connection, roots: Sequence[Root] | None) -> Scope:
    known = {root_from(path): id for id, path in connection.execute("SELECT * FROM root")}
    if roots is None:
        roots = list(known)
    for root in roots:
        if root not in known:
            shown = printable(str(root))
            raise RetrievalError(
                f"{shown} is not in the document index",
                hint=f"Add it: unified-flow index {shlex.quote(shown)}",
            )
    names = [root.name if isinstance(root, Path) else root for root in roots]
    clash = len(set(names)) < len(names)
    ids = ", ".join(str(known[root]) for root in roots)
    if set(roots) == known.keys():
        return Scope(ids, "", clash)
    return Scope(ids, f"file.id IN (SELECT file_id FROM member WHERE root_id IN ({ids}))", clash)


def restricting(scope: Scope) -> str:
    return f"AND {scope.condition}" if scope.condition else ""


def joining(scope: Scope) -> str:
    """What a query of `term` needs for the condition of the scope."""
    if not scope.condition:
        return ""
    return "CROSS JOIN chunk ON chunk.id = term.rowid CROSS JOIN file ON file.id = chunk.file_id"


def totals(connection: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
    """(chunks, terms) that are in scope."""
    chunks, length = connection.execute(
        f"SELECT total(chunks), total(terms) FROM file WHERE 1 {restricting(scope)}"
    ).fetchone()
    return int(chunks), int(length)
