"""The user's documents as a turn sees them: searched, and brought up to date before that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.home import find_home, state_folder
from unified_flow.config.document_roots import (
    DEFAULT_COLLECTION,
    Root,
    absolute,
    folders_of,
    resolved,
)
from unified_flow.config.settings import Settings, load
from unified_flow.errors import ConfigError, InputError
from unified_flow.retrieval.collection import Statistics, statistics, unknown_collection
from unified_flow.retrieval.explanation import Explanation, explain
from unified_flow.retrieval.formats.document import require_formats
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_reader import IndexReader, Search
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.retrieval.index_writer import IndexReport, Progress
from unified_flow.retrieval.web_pages import fetch_policy_of, page_fetcher
from unified_flow.turns.passage import Passage

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # the commands say it themselves
AS_IT_IS = "searched as it is, whatever has changed since"

if TYPE_CHECKING:
    from unified_flow.retrieval.hybrid_search import HybridSearch


def roots_of(
    settings: Settings, named: Sequence[Path | str] | None, chosen: str | None
) -> list[Root]:
    """What was `named`, else what the settings say of the collection.

    `docs` belongs to the collection in force when none is `chosen`, and to the default one.
    Raises InputError for what is not there.
    """
    if named:
        return resolved(named)
    if settings.collection in settings.collections:
        return resolved(settings.collections[settings.collection].docs)
    return resolved(settings.docs if chosen in (None, DEFAULT_COLLECTION) else [])


def documents_of(home: Path, settings: Settings, roots: list[Root]) -> Documents | None:
    """None without documents: nothing configured, nothing named, nothing indexed before.

    Raises InputError for a collection other than the default one of which nothing is known.
    """
    folder = index_folder(home)
    index = Index.open(folder, settings.collection)
    if not roots and not index.path.exists():
        if settings.collection != DEFAULT_COLLECTION:
            raise unknown_collection(folder, settings.collection)
        return None
    require_formats(settings.documents.formats)
    options = UpdateOptions(
        exclude=frozenset([state_folder(home), home / "logs"]),
        reading=settings.documents,
        fetch=page_fetcher(fetch_policy_of(settings.research)),
    )
    return Documents(index, roots, options, _hybrid_search(index, settings))


def _hybrid_search(index: Index, settings: Settings) -> HybridSearch | None:
    """None where no embedding model is configured. Raises ConfigError."""
    vectors = settings.vectors
    if vectors.model is None:
        return None
    try:
        from unified_flow.retrieval.vector_table import VectorTable
    except ImportError as exc:
        raise ConfigError(
            "search by meaning needs numpy", hint="pip install 'unified-flow[vectors]'"
        ) from exc
    from unified_flow.retrieval.embedding import Embedder
    from unified_flow.retrieval.hybrid_search import HybridSearch
    from unified_flow.retrieval.qdrant_store import QdrantStore
    from unified_flow.servers.keys import read_key

    if (path := vectors.path) is not None:
        start_timeout_s = settings.local.start_timeout_s
        embedder = Embedder.of_file(
            path, start_timeout_s=start_timeout_s, timeout_s=vectors.timeout_s
        )
    elif (base_url := vectors.base_url or settings.base_url) is not None:
        key_env = vectors.api_key_env if vectors.base_url else settings.api_key_env
        key_file = None if vectors.base_url else settings.api_key_file
        key = read_key(key_env, key_file)
        embedder = Embedder.at(base_url, vectors.model, key, vectors.timeout_s)
    else:
        raise ConfigError(
            f"no server is named for the embedding model {vectors.model}",
            hint="set base_url, there or under [vectors], or name a .gguf file",
        )
    if vectors.qdrant_url is None:
        return HybridSearch(embedder, VectorTable(index.path, embedder.name))
    store_key = read_key(vectors.qdrant_key_env) if vectors.qdrant_key_env else None
    store = QdrantStore(vectors.qdrant_url, settings.collection, embedder.name, store_key)
    return HybridSearch(embedder, store)


def open_documents(
    home: Path | str | None,
    docs: Sequence[Path | str] | None = None,
    collection: str | None = None,
) -> Documents:
    """The documents alone, without a flow. Raises InputError if there are none at all."""
    root = find_home(home)
    named = [absolute(each) for each in docs] if docs else None
    settings = load(root, docs=named, collection=collection)
    documents = documents_of(root, settings, roots_of(settings, named, collection))
    if documents is None:
        raise InputError("no documents are named", hint="unified-flow index FOLDER")
    return documents


def unsearched_roots(home: Path | str | None, collection: str | None = None) -> list[Root]:
    """What the index remembers and the settings leave out; nothing if they name no documents.

    Raises InputError for configured documents that are not there, RetrievalError.
    """
    root = find_home(home)
    settings = load(root, collection=collection)
    searched = roots_of(settings, None, collection)
    if not searched:
        return []
    folders = folders_of(searched)
    known = Index.open(index_folder(root), settings.collection).roots()
    return [
        each
        for each in known
        if each not in searched
        and not (isinstance(each, Path) and any(map(each.is_relative_to, folders)))
    ]


def index_folder(home: Path) -> Path:
    """Where the collections of a home are."""
    return state_folder(home) / "index"


class Documents:
    """Those under `roots`; without roots, all that the index remembers.

    Files that changed are read again, once for each process; web pages only when `refresh` is
    asked to.
    """

    def __init__(
        self,
        index: Index,
        roots: Sequence[Root] | None,
        options: UpdateOptions | None = None,
        hybrid: HybridSearch | None = None,
    ) -> None:
        self.index = index
        self._hybrid = hybrid
        self.roots = list(roots) if roots else None
        self._options = options or UpdateOptions()
        self.fresh = False  # whether this process has read what changed
        self._lock = threading.Lock()

    def ensure_fresh(self, progress: Progress | None = None, *, again: bool = False) -> None:
        """`refresh`, unless the index can only be read or this process has done so; `again` does it
        once more."""
        with self._lock:
            if self.fresh and not (again and not self.index.is_read_only):
                return
            if not self._is_used_as_it_is():
                self.refresh(progress)

    def _is_used_as_it_is(self) -> bool:
        if not self.index.is_read_only:
            return False
        if self.roots:
            self.index.close()
            self.index = self.index.within(self.roots)
        logger.warning("the document index %s is read-only: %s", self.index.path, AS_IT_IS)
        self.fresh = True
        return True

    def refresh(
        self,
        progress: Progress | None = None,
        *,
        rebuild: bool = False,
        fetch_again: bool = False,
    ) -> IndexReport:
        """Raises InputError for roots without documents, RetrievalError for a broken index, and for
        roots that are not there any more."""
        options = replace(self._options, rebuild=rebuild, fetch_again=fetch_again)
        report = self.index.update(self.roots, options, progress=progress)
        if report.roots:
            report.require_documents()
        if self._hybrid is not None:
            self._hybrid.follow(self.index, progress)
        self.fresh = True
        return report

    def watched(self) -> list[Root]:
        """The roots whose changes matter: those that are named, or all that are remembered."""
        return self.roots or self.index.roots()

    def explain(self, query: str, limit: int = 8, why: str | None = None) -> Explanation:
        """What `search` finds, and how it came about; `why` names a file to look for."""
        with self._found(query, limit) as (reader, found):
            return explain(reader, found, query, limit, why)

    def statistics(self) -> Statistics:
        """Of the index as it is. Raises RetrievalError."""
        index = self.index.within(self.roots) if self.roots else self.index
        try:
            return statistics(index, self._options.exclude)
        finally:
            index.close()

    def search(
        self, query: str, limit: int = 8, conversation: Mapping[str, float] | None = None
    ) -> list[Passage]:
        """As Index.search, of documents that are up to date."""
        with self._found(query, limit, conversation) as (reader, found):
            return [passage for passage, _ in reader.passages(found.ordered, limit)]

    def _found(
        self, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> AbstractContextManager[tuple[IndexReader, Search]]:
        self.ensure_fresh()
        if self._hybrid is not None:
            return self._hybrid.found(self.index, query, limit, conversation)
        return self.index.found(query, limit, conversation)

    def close(self) -> None:
        self.index.close()
        if self._hybrid is not None:
            self._hybrid.close()
