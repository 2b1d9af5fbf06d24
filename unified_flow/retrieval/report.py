"""What an update of the index did."""

from __future__ import annotations

from dataclasses import dataclass

from unified_flow.errors import InputError


@dataclass(frozen=True)
class IndexReport:
    """Files added, changed, removed and unchanged; `chunks` is what a search can now return.

    `skipped` holds (path, reason) for everything that was found and cannot be searched;
    `guessed` (path, encoding) for text whose encoding nothing declares.
    """

    roots: tuple[str, ...]
    added: int
    changed: int
    removed: int
    unchanged: int
    chunks: int
    skipped: tuple[tuple[str, str], ...]
    guessed: tuple[tuple[str, str], ...]
    duration_ms: float

    @property
    def files(self) -> int:
        """Documents in the index under these roots."""
        return self.added + self.changed + self.unchanged

    @property
    def empty(self) -> bool:
        return self.chunks == 0

    def require_documents(self) -> None:
        """InputError if there is nothing to search under the roots."""
        if not self.empty:
            return
        where = ", ".join(self.roots)
        reasons = "; ".join(f"{path}: {reason}" for path, reason in self.skipped[:3])
        raise InputError(
            f"No documents to search in {where}" + (f" (skipped {reasons})" if reasons else ""),
            field="docs",
            hint="Name a folder with Markdown, reStructuredText, text, HTML, source or office "
            "files; what git ignores is left out.",
        )
