"""Search by meaning beside search by words: the vectors of an index, and both rankings as one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from unified_flow.errors import RetrievalError
from unified_flow.retrieval.embedding import BATCH, Embedder, TextRefusedError
from unified_flow.retrieval.explanation import Explanation, explain_fused
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_reader import IndexReader
from unified_flow.retrieval.index_writer import Progress
from unified_flow.retrieval.vector_store import VectorStore, key_of
from unified_flow.turns.passage import Passage

CANDIDATES = 30  # of each ranking
K = 60  # the paper's constant: how little the first ranks stand out

Key = TypeVar("Key", bound=Hashable)
Ranked = list[tuple[float, int]]
Rankings = tuple[list[int], list[int]]


class HybridSearch:
    """Blocking, like the index. One embedder's vectors in one store."""

    def __init__(self, embedder: Embedder, store: VectorStore) -> None:
        self._embedder = embedder
        self._store = store
        self._chunks: dict[str, int] = {}
        self._state = -1

    def follow(self, index: Index, progress: Progress | None = None) -> int:
        """Embed what is new in the index and forget what is gone; how many were embedded.

        What was embedded stays, if it is cut short: the next time goes on from there.
        """
        with index.reading() as reader:
            self._state = reader.data_version
            texts, self._chunks = _texts(reader)
            sees_all = not reader.scope.restriction
        known = self._store.keys()
        missing = [key for key in texts if key not in known]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            try:
                vectors = self._embedder.embed([texts[key] for key in batch])
            except TextRefusedError as exc:
                raise _refused_at(index, self._chunks[key_of(exc.text)], exc) from exc
            self._store.add(dict(zip(batch, vectors, strict=True)))
            if progress is not None:
                progress(start + len(batch), len(missing))
        if sees_all:  # else some of them belong to what this index does not see
            self._store.remove(known - texts.keys())
        return len(missing)

    def search(
        self,
        index: Index,
        query: str,
        limit: int,
        conversation: Mapping[str, float] | None = None,
    ) -> list[Passage]:
        """In the order of both rankings joined. `score` is that of the words, 0 without any: it
        shows whether a passage states an answer, which a rank does not. Raises RetrievalError."""
        with self._ranked(index, query, limit, conversation) as (reader, ranked, _):
            found = _by_words(reader, query, len(ranked), conversation)
            words = {rowid: score for score, rowid in found}
            scored = [(words.get(rowid, 0.0), rowid) for _, rowid in ranked]
            return [passage for passage, _ in reader.passages(scored, limit)]

    def explain(self, index: Index, query: str, limit: int) -> Explanation:
        """What `search` finds, with the place of each in both rankings."""
        with self._ranked(index, query, limit) as (reader, ranked, rankings):
            return explain_fused(reader, query, limit, ranked, rankings)

    @contextmanager
    def _ranked(
        self,
        index: Index,
        query: str,
        limit: int,
        conversation: Mapping[str, float] | None = None,
    ) -> Iterator[tuple[IndexReader, Ranked, Rankings]]:
        (vector,) = self._embedder.embed([query])
        most = max(limit, CANDIDATES)
        near = self._store.nearest(vector, 4 * most)
        while True:
            with index.reading() as reader:
                if reader.data_version == self._state:
                    found = _by_words(reader, query, most, conversation)
                    by_words = [rowid for _, rowid in found]
                    # Others of the collection may be nearer than those that this index sees.
                    by_meaning = [self._chunks[key] for key in near if key in self._chunks]
                    rankings = by_words, by_meaning[:most]
                    yield reader, fused(rankings), rankings
                    return
            self.follow(index)  # another process has changed the index

    def close(self) -> None:
        self._embedder.close()


def fused(rankings: Sequence[Sequence[Key]]) -> list[tuple[float, Key]]:
    """(score, key), best first. 1.0 is first in all; a key scores for each ranking that has it.

    Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009).
    """
    best = len(rankings) / (K + 1)
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
    ordered = sorted(scores.items(), key=lambda item: -item[1])
    return [(score / best, key) for key, score in ordered]


def _texts(reader: IndexReader) -> tuple[dict[str, str], dict[str, int]]:
    """What is to be embedded, and the chunk that it is of, by key; in the order of the files."""
    rows = reader.connection.execute(
        "SELECT chunk.id, heading, text FROM chunk JOIN file ON file.id = file_id"
        f" WHERE 1 {reader.scope.restriction} ORDER BY chunk.id"
    )
    texts: dict[str, str] = {}
    chunks: dict[str, int] = {}
    for rowid, heading, text in rows:
        embedded = f"{heading}\n{text}" if heading else text
        key = key_of(embedded)
        texts.setdefault(key, embedded)
        chunks.setdefault(key, rowid)
    return texts, chunks


def _refused_at(index: Index, chunk: int, refused: TextRefusedError) -> RetrievalError:
    """The same, with where the text stands."""
    with index.reading() as reader:
        found = reader.passages([(0.0, chunk)], 1)
    where = found[0][0].source() if found else "a text"  # gone since then
    return RetrievalError(
        f"{where} has no vector ({len(refused.text):,} characters): {refused}",
        hint="is it too long for the model? Take one that reads longer texts, or keep the file out"
        " of the index (.gitignore); else mend the server",
    )


def _by_words(
    reader: IndexReader, query: str, limit: int, conversation: Mapping[str, float] | None
) -> Ranked:
    return reader.found(query, limit, conversation).ordered[:limit]
