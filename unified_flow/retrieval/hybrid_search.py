"""Search by meaning beside search by words: the vectors of an index, and both scores as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from heapq import nlargest
from statistics import fmean
from typing import TYPE_CHECKING

from unified_flow.errors import RetrievalError
from unified_flow.retrieval.bm25 import Corpus
from unified_flow.retrieval.embedding import Embedder, Vector
from unified_flow.retrieval.file_reading import embedded_text
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_reader import IndexReader, Search
from unified_flow.retrieval.index_writer import Progress

if TYPE_CHECKING:
    from unified_flow.retrieval.qdrant_store import QdrantStore
    from unified_flow.retrieval.vector_table import VectorTable

CANDIDATES = 48  # by meaning; those by words are about as many
MEANING_WEIGHT = 2.0  # that of the words is 1 (benchmarks/README.md)
SAMPLE = 200  # passages that tell how near an average one is


class HybridSearch:
    """Blocking, like the index. One embedder's vectors in one store, which has the vectors of one
    model by the digest of what was embedded, and raises RetrievalError."""

    def __init__(self, embedder: Embedder, vectors: VectorTable | QdrantStore) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._keys: dict[int, bytes] = {}  # of the chunks
        self._chunks: dict[bytes, int] = {}
        self._sample: list[bytes] = []
        # A reader learns a new one whenever the index has changed, or what is seen of it.
        self._corpus: Corpus | None = None

    def follow(self, index: Index, progress: Progress | None = None) -> int:
        """Embed what is new in the index and forget what is gone; how many were embedded.

        What was embedded stays, if it is cut short: the next time goes on from there.
        """
        known = self._vectors.keys()
        with index.reading() as reader:
            self._learn(reader)
            missing = {key: id for key, id in self._chunks.items() if key not in known}
            of_chunk = "SELECT heading, text FROM chunk WHERE id = ?"
            rows = (
                (key, reader.connection.execute(of_chunk, (id,))) for key, id in missing.items()
            )
            texts = {key: embedded_text(*row.fetchone()) for key, row in rows}
            sees_all = not reader.scope.restriction
        if missing and index.is_read_only:
            raise RetrievalError(
                f"{len(missing):,} passages have no vector of {self._embedder.name}, and"
                f" {index.path} is read-only",
                hint="index the documents where the index can be written, or take [vectors] out",
            )
        keys, size = list(missing), self._embedder.batch
        for start in range(0, len(keys), size):
            batch = keys[start : start + size]
            vectors = self._embedder.embed([texts[key] for key in batch])
            self._vectors.add(dict(zip(batch, vectors, strict=True)))
            if progress is not None:
                progress(start + len(batch), len(keys), "embedding")
        # Else some of them belong to what this index does not see, or to a newer one.
        if sees_all and not index.is_read_only:
            self._vectors.remove(known - self._chunks.keys())
        return len(keys)

    def close(self) -> None:
        self._embedder.close()

    @contextmanager
    def found(
        self, index: Index, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> Iterator[tuple[IndexReader, Search]]:
        """`Index.found` in the order of both scores joined. Raises RetrievalError."""
        (vector,) = self._embedder.embed([query])
        while True:
            with index.reading() as reader:
                if reader.corpus is self._corpus:
                    found = reader.found(query, limit, conversation)
                    meaning = self._meaning(found, vector, max(limit, CANDIDATES))
                    words = {id: score for score, id in found.ordered}
                    others = reader.chunks(meaning.keys() - words.keys())
                    words |= {id: score for score, id in reader.ordered(others, found.question)}
                    ordered = joined(words, meaning)
                    part = reader.next_part(ordered[0][1]) if ordered else None
                    if part is not None and part not in words:
                        more = reader.ordered(reader.chunks([part]), found.question)
                        ordered = joined(words | {id: score for score, id in more}, meaning)
                    yield reader, replace(found, ordered=ordered, meaning=meaning)
                    return
            self.follow(index)  # it has changed, perhaps through another process

    def _meaning(self, found: Search, vector: Vector, limit: int) -> dict[int, float]:
        """How near each candidate is, by its chunk: 0 as an average passage, 1 the same."""
        proposed = [self._keys[chunk.id] for chunk in found.proposed]
        cosines = self._vectors.cosines(vector, limit, self._chunks, [*proposed, *self._sample])
        # Models differ in what an average is: 0.1 with some, 0.8 with others.
        sample = [cosines[key] for key in self._sample if key in cosines]
        average = min(fmean(sample), 0.99) if sample else 0.0
        nearest = nlargest(limit, cosines, key=cosines.__getitem__)
        return {
            self._chunks[key]: min(max((cosines[key] - average) / (1 - average), 0.0), 1.0)
            for key in {*nearest, *proposed} & cosines.keys()
        }

    def _learn(self, reader: IndexReader) -> None:
        rows = reader.connection.execute(
            "SELECT chunk.id, chunk.digest FROM chunk JOIN file ON file.id = file_id"
            f" WHERE 1 {reader.scope.restriction} ORDER BY chunk.id DESC"
        )
        self._keys = dict(rows.fetchall())
        self._chunks = {key: id for id, key in self._keys.items()}
        every = max(1, len(self._chunks) // SAMPLE)
        self._sample = list(self._chunks)[::every]
        self._corpus = reader.corpus


def joined(words: Mapping[int, float], meaning: Mapping[int, float]) -> list[tuple[float, int]]:
    """(score, chunk), best first: the weighted mean of both scores, 0 without one. 0 to 1."""
    scored = [
        ((score + MEANING_WEIGHT * meaning.get(id, 0.0)) / (1 + MEANING_WEIGHT), id)
        for id, score in words.items()
    ]
    return sorted(scored, key=lambda each: (-each[0], each[1]))
