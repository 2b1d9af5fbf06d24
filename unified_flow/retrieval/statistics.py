"""What a collection holds, counted."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from unified_flow.retrieval.reader import Reader
from unified_flow.retrieval.scope import restricting

LARGEST = 5


@dataclass(frozen=True)
class Statistics:
    """`terms` counts every occurrence, `distinct_terms` each once over the whole collection.

    `largest` holds (path, characters, chunks), `skipped` reason to number of files; `oldest` and
    `newest` say when files were read last (UTC), None without any.
    """

    collection: str
    roots: tuple[str, ...]
    files: int
    chunks: int
    terms: int
    distinct_terms: int
    size_bytes: int
    largest: tuple[tuple[str, int, int], ...]
    languages: dict[str, int]
    formats: dict[str, int]
    skipped: dict[str, int]
    oldest: datetime | None
    newest: datetime | None


def statistics(
    reader: Reader,
    collection: str,
    roots: Iterable[str],
    size_bytes: int,
    left_out: Iterable[tuple[str, str]],
) -> Statistics:
    """`left_out` holds (path, reason) of what is found on disk and never becomes a file here."""
    where = restricting(reader.scope)

    def rows(sql: str) -> sqlite3.Cursor:
        return reader.connection.execute(sql)

    files, terms, oldest, newest = rows(
        "SELECT count(*), total(terms), min(read_at), max(read_at) FROM file "
        f"WHERE skipped IS NULL {where}"
    ).fetchone()
    shown = "(SELECT min(shown) FROM member WHERE file_id = file.id)"
    formats = Counter(
        PurePath(path).suffix.casefold() if "://" not in path else "web page"
        for (path,) in rows(f"SELECT {shown} FROM file WHERE skipped IS NULL {where}")
    )
    skipped = Counter(reason for _, reason in left_out)
    skipped.update(
        reason for (reason,) in rows(f"SELECT skipped FROM file WHERE skipped IS NOT NULL {where}")
    )
    largest = rows(
        f"SELECT {shown}, (SELECT total(length(text)) FROM chunk WHERE file_id = file.id) AS size, "
        f"chunks FROM file WHERE skipped IS NULL {where} ORDER BY size DESC LIMIT {LARGEST}"
    )
    return Statistics(
        collection=collection,
        roots=tuple(roots),
        files=files,
        chunks=reader.corpus.size,
        terms=int(terms),
        distinct_terms=rows("SELECT count(*) FROM vocabulary").fetchone()[0],
        size_bytes=size_bytes,
        largest=tuple((path, int(size), chunks) for path, size, chunks in largest),
        languages=dict(
            rows(
                f"SELECT language, count(*) FROM file WHERE chunks > 0 {where} "
                "GROUP BY language ORDER BY count(*) DESC, language"
            ).fetchall()
        ),
        formats={name or "none": count for name, count in formats.most_common()},
        skipped=dict(skipped.most_common()),
        oldest=_time(oldest),
        newest=_time(newest),
    )


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
