"""The collections of a home: one SQLite file each, side by side in one folder."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from unified_flow.config.document_roots import Root
from unified_flow.errors import InputError
from unified_flow.retrieval import store
from unified_flow.retrieval.index import SUFFIX, Index


@dataclass(frozen=True)
class Collection:
    """`size_bytes` is what it takes on the disk, `files` those that a search can find."""

    name: str
    files: int
    chunks: int
    roots: tuple[Root, ...]
    size_bytes: int


def names(folder: Path) -> list[str]:
    """Of the collections in `folder`, in order; [] where there is no folder."""
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.glob(f"*{SUFFIX}"))


def described(folder: Path, name: str) -> Collection:
    """Raises RetrievalError for a broken index, or one of another version."""
    with Index.open(folder, name) as index:
        files, chunks = index.counts()
        roots = tuple(index.roots())
        return Collection(name, files, chunks, roots, store.size_on_disk(index.path))


def delete(folder: Path, name: str) -> None:
    """Takes the index away, not the documents. Raises InputError for one that is not there."""
    path = Index.open(folder, name).path
    if not path.exists():
        raise unknown_collection(folder, name)
    with store.failures(path, "Delete the file by hand."):
        store.delete_files(path)


def unknown_collection(folder: Path, name: str) -> InputError:
    known = names(folder)
    close = get_close_matches(name, known, n=1)
    there = f"; did you mean {close[0]!r}?" if close else ""
    return InputError(
        f"there is no collection {name!r}{there}",
        field="collection",
        hint=f"Known: {', '.join(known) or 'none'}. "
        f"Make it: unified-flow index PATH --collection {name}",
    )
