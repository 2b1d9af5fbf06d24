"""The user's documents as a turn sees them: searched, and brought up to date before that."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from unified_flow.retrieval import Passage
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.report import IndexReport
from unified_flow.retrieval.roots import Root
from unified_flow.retrieval.update import Progress
from unified_flow.retrieval.web_pages import Fetch


class Documents:
    """A Retriever over `roots`; without roots, over all that the index remembers.

    Files are read again when they changed, once for each process; web pages, which `fetch` gets,
    only when `refresh` is told so. `exclude` names folders that are never documents: the flow's
    own state and logs.
    """

    def __init__(
        self,
        index: Index,
        roots: Sequence[Root] | None,
        exclude: Sequence[Path] = (),
        fetch: Fetch | None = None,
    ) -> None:
        self.index = index
        self.roots = list(roots) if roots else None
        self._exclude = exclude
        self._fetch = fetch
        self._fresh = False
        self._lock = threading.Lock()

    def ensure_fresh(self, progress: Progress | None = None) -> None:
        """`refresh`, unless this process has done so."""
        with self._lock:
            if not self._fresh:
                self.refresh(progress)

    def refresh(
        self,
        progress: Progress | None = None,
        *,
        rebuild: bool = False,
        fetch_again: bool = False,
    ) -> IndexReport:
        """Raises InputError for roots without documents, RetrievalError for a broken index."""
        report = self.index.update(
            self.roots,
            progress=progress,
            rebuild=rebuild,
            exclude=self._exclude,
            fetch=self._fetch,
            fetch_again=fetch_again,
        )
        if self.roots:
            report.require_documents()
        self._fresh = True
        return report

    def search(self, query: str, limit: int = 8) -> list[Passage]:
        self.ensure_fresh()
        return self.index.search(query, limit)

    def close(self) -> None:
        self.index.close()
