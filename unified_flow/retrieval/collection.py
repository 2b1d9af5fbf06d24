"""The collections of a home, one SQLite file each side by side in one folder; what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path, PurePath

from unified_flow.config.document_roots import Root, folders_of, own_folders
from unified_flow.errors import InputError
from unified_flow.lib.printable import printable
from unified_flow.retrieval import store
from unified_flow.retrieval.discovery import discover, meant
from unified_flow.retrieval.index import SUFFIX, Index

LARGEST = 5


@dataclass(frozen=True)
class Collection:
    """`size_bytes` is what it takes on the disk, `files` those that a search can find."""

    name: str
    files: int
    chunks: int
    roots: tuple[Root, ...]
    size_bytes: int


@dataclass(frozen=True)
class Statistics:
    """`largest` holds (path, characters, chunks), `skipped` reason to number of files, `unread`
    documents that are not read as a whole; `newest` says when a file was read last (UTC), None
    without any.
    """

    collection: str
    roots: tuple[str, ...]
    files: int
    chunks: int
    size_bytes: int
    largest: tuple[tuple[str, int, int], ...]
    languages: dict[str, int]
    formats: dict[str, int]
    skipped: dict[str, int]
    unread: tuple[str, ...]
    newest: datetime | None


def collection_names(folder: Path) -> list[str]:
    """The names of the collections in `folder`; [] where there is no folder."""
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.glob(f"*{SUFFIX}"))


def collection_at(folder: Path, name: str) -> Collection:
    """Raises RetrievalError for a broken index, or one of another version."""
    with Index.open(folder, name) as index:
        files, chunks = index.counts()
        roots = tuple(index.roots())
        return Collection(name, files, chunks, roots, store.size_on_disk(index.path))


def delete_collection(folder: Path, name: str) -> None:
    """Takes the index away, not the documents. Raises InputError for one that is not there."""
    path = Index.open(folder, name).path
    if not path.exists():
        raise unknown_collection(folder, name)
    with store.index_failures(path, "Delete the file by hand."):
        store.delete_files(path)


def unknown_collection(folder: Path, name: str) -> InputError:
    known = collection_names(folder)
    close = get_close_matches(name, known, n=1)
    there = f"; did you mean {close[0]!r}?" if close else ""
    return InputError(
        f"there is no collection {name!r}{there}",
        field="collection",
        hint=f"Known: {', '.join(known) or 'none'}. "
        f"Make it: unified-flow index PATH --collection {name}",
    )


def statistics(index: Index, exclude: Iterable[Path] = ()) -> Statistics:
    """Looks at the folders too, for what is left out of them; `exclude` as in `Index.update`."""
    roots = index.roots()
    left_out = frozenset([*exclude, *own_folders(index.path), *meant(roots)])
    shown = "(SELECT min(shown) FROM member WHERE file_id = file.id)"
    with index.reading() as reader:
        where = reader.scope.restriction
        found = [discover(root, left_out) for root in folders_of(roots)]
        skipped = Counter(reason for each in found for _, reason in each.skipped)
        rows = reader.connection.execute
        files, newest = rows(
            f"SELECT count(*), max(read_at) FROM file WHERE skipped IS NULL {where}"
        ).fetchone()
        formats = Counter(
            PurePath(path).suffix.casefold() if "://" not in path else "web page"
            for (path,) in rows(f"SELECT {shown} FROM file WHERE skipped IS NULL {where}")
        )
        skipped.update(
            reason
            for (reason,) in rows(f"SELECT skipped FROM file WHERE skipped IS NOT NULL {where}")
        )
        largest = rows(
            f"SELECT {shown}, (SELECT total(length(text)) FROM chunk WHERE file_id = file.id) "
            f"AS size, chunks FROM file WHERE skipped IS NULL {where} "
            f"ORDER BY size DESC LIMIT {LARGEST}"
        )
        return Statistics(
            collection=index.path.name.removesuffix(SUFFIX),
            roots=tuple(printable(str(root)) for root in roots),
            files=files,
            chunks=reader.corpus.size,
            size_bytes=store.size_on_disk(index.path),
            largest=tuple((path, int(size), chunks) for path, size, chunks in largest),
            languages=dict(reader.languages),
            formats={name or "none": count for name, count in formats.most_common()},
            skipped=dict(skipped.most_common()),
            unread=reader.unread,
            newest=newest and datetime.fromtimestamp(newest, UTC),
        )
