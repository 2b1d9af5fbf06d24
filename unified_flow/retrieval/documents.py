"""The user's documents as a turn sees them: searched, and brought up to date before that."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from time import monotonic
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
from unified_flow.errors import ConfigError, InputError, needs_extra
from unified_flow.retrieval import store
from unified_flow.retrieval.collection import Statistics, statistics, unknown_collection
from unified_flow.retrieval.explanation import Explanation, explain
from unified_flow.retrieval.formats.document import require_formats
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_reader import IndexReader, Search
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.retrieval.index_writer import IndexReport, Progress
from unified_flow.retrieval.web_pages import page_fetcher
from unified_flow.turns.passage import Passage

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # the commands say it themselves
AS_IT_IS = "searched as it is, whatever has changed since"
PUBLISHED_FOR_S = 5.0  # how long a worker searches a snapshot before it looks for a newer one

if TYPE_CHECKING:
    from unified_flow.retrieval.hybrid_search import HybridSearch
    from unified_flow.shared.database import Database
    from unified_flow.shared.index_snapshot import PublishedIndex, Snapshot


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


def documents_of(
    home: Path,
    settings: Settings,
    named: Sequence[Path | str] | None,
    chosen: str | None,
    database: Database | None = None,
) -> Documents | None:
    """None without documents: nothing configured, nothing named, nothing indexed before.

    With a `database` that machines share, they are those that are published there. Raises
    InputError for documents that are not there, and for a collection other than the default one of
    which nothing is known.
    """
    if database is not None:
        return _published_documents(published_index(home, settings, database), settings, named)
    roots = roots_of(settings, named, chosen)
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
        fetch=page_fetcher(settings.research),
    )
    return Documents(index, roots, options, _hybrid_search(index, settings))


def published_index(home: Path, settings: Settings, database: Database) -> PublishedIndex:
    """The published index of the collection in force. Raises ConfigError for vectors without a
    server that all workers can ask."""
    from unified_flow.shared.index_snapshot import PublishedIndex

    if settings.vectors.model is not None and settings.vectors.qdrant_url is None:
        raise ConfigError(
            "search by meaning needs a vector store that all workers can ask",
            hint="set qdrant_url under [vectors]",
        )
    folder = index_folder(home) / "published"
    return PublishedIndex(database, folder, settings.collection, store.version())


def publish(
    home: Path | str | None, collection: str | None, index: Index, database: Database
) -> Snapshot | None:
    """The state of `index` for all workers; None if it is published already. Raises
    RetrievalError."""
    root = find_home(home)
    published = published_index(root, load(root, collection=collection), database)
    with store.index_failures(index.path, "Build it anew: unified-flow index --rebuild PATH"):
        return published.publish(index.path)


def _published_documents(
    published: PublishedIndex, settings: Settings, named: Sequence[Path | str] | None
) -> Documents | None:
    """None if nothing is published and the settings name no documents."""
    if named:
        logger.warning("--docs is not heeded: workers search what unified-flow index has published")
    wanted = settings.docs or settings.collection in settings.collections
    if not wanted and published.newest() is None:
        return None
    index = Index.open(published.folder, settings.collection)
    hybrid = _hybrid_search(index, settings)
    return Documents(index, None, hybrid=hybrid, published=published)


def _hybrid_search(index: Index, settings: Settings) -> HybridSearch | None:
    """None where no embedding model is configured. Raises ConfigError."""
    vectors = settings.vectors
    if vectors.model is None:
        return None
    with needs_extra("search by meaning", "vectors"):
        from unified_flow.retrieval.vector_table import VectorTable
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
    vector_store = QdrantStore(vectors.qdrant_url, settings.collection, embedder.name, store_key)
    return HybridSearch(embedder, vector_store)


def open_documents(
    home: Path | str | None,
    docs: Sequence[Path | str] | None = None,
    collection: str | None = None,
    database: Database | None = None,
) -> Documents:
    """The documents alone, without a flow; `database` as in `documents_of`. Raises InputError if
    there are none at all."""
    root = find_home(home)
    named = [absolute(each) for each in docs] if docs else None
    settings = load(root, docs=named, collection=collection)
    documents = documents_of(root, settings, named, collection, database)
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
    """The documents under `roots`; without roots, all that the index remembers.

    Files that changed are read again, once for each process; web pages only when `refresh` is
    asked to. Those that are `published` are never read here: a newer snapshot is looked for.
    """

    def __init__(
        self,
        index: Index,
        roots: Sequence[Root] | None,
        options: UpdateOptions | None = None,
        hybrid: HybridSearch | None = None,
        published: PublishedIndex | None = None,
    ) -> None:
        self.index = index
        self._hybrid = hybrid
        self._published = published
        self.roots = list(roots) if roots else None
        self._options = options or UpdateOptions()
        self._fresh_until = -math.inf  # on the monotonic clock
        self._lock = threading.Lock()

    @property
    def fresh(self) -> bool:
        """Whether this process has read what changed, or looked for a newer snapshot."""
        return monotonic() < self._fresh_until

    @property
    def may_wait(self) -> bool:
        """Whether a search does: for changed documents to be read, or for a server."""
        return self._hybrid is not None or not self.fresh

    @property
    def is_published(self) -> bool:
        return self._published is not None

    def ensure_fresh(self, progress: Progress | None = None, *, again: bool = False) -> None:
        """`refresh`, unless the index can only be read or this process has done so; `again` does it
        once more. Of what is published, a look for something newer."""
        with self._lock:
            if self.fresh and not (again and (self._published or not self.index.is_read_only)):
                return
            if self._published is not None:
                self._follow(self._published)
            elif not self._is_used_as_it_is():
                self.refresh(progress)

    def _follow(self, published: PublishedIndex) -> None:
        """Raises RetrievalError if nothing is published, DatabaseAwayError."""
        copy = published.local_copy()
        if copy != self.index.path:
            self.index.close()
            self.index = Index(copy, None)
        self._fresh_until = monotonic() + PUBLISHED_FOR_S

    def _is_used_as_it_is(self) -> bool:
        if not self.index.is_read_only:
            return False
        if self.roots:
            self.index.close()
            self.index = self.index.within(self.roots)
        logger.warning("the document index %s is read-only: %s", self.index.path, AS_IT_IS)
        self._fresh_until = math.inf
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
        self._fresh_until = math.inf
        return report

    def watched(self) -> list[Root]:
        """The roots whose changes matter: those that are named, or all that are remembered."""
        return self.roots or self.index.roots()

    def explain(self, query: str, limit: int = 8, why: str | None = None) -> Explanation:
        """What `search` finds, and how it came about; `why` names a file to look for."""
        with self.found(query, limit) as (reader, found):
            return explain(reader, found, query, limit, why)

    def statistics(self) -> Statistics:
        """Statistics of the index as it is. Raises RetrievalError."""
        with self.index.within(self.roots) if self.roots else self.index as index:
            return statistics(index, self._options.exclude)

    def search(
        self, query: str, limit: int = 8, conversation: Mapping[str, float] | None = None
    ) -> list[Passage]:
        """`Index.search`, once the documents are up to date."""
        with self.found(query, limit, conversation) as (reader, found):
            return [passage for passage, _ in reader.passages(found.ordered, limit)]

    def found(
        self, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> AbstractContextManager[tuple[IndexReader, Search]]:
        """`Index.found`, once the documents are up to date."""
        self.ensure_fresh()
        if self._hybrid is not None:
            return self._hybrid.found(self.index, query, limit, conversation)
        return self.index.found(query, limit, conversation)

    def close(self) -> None:
        self.index.close()
        if self._hybrid is not None:
            self._hybrid.close()
