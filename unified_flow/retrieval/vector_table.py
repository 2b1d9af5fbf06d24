"""Vectors in the index's own file, a table beside the chunks; searched with numpy.

A vector belongs to what was embedded (its digest) and to the model that did it: the same text is
never embedded twice, and vectors of two models are never compared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unified_flow.retrieval import store
from unified_flow.retrieval.embedding import require_size

_TOLERANCE = 1e-3  # of a length that was 1 when it was written


class VectorTable:
    """The vectors of one model, in the file at `path`. The matrix is read once, and again after
    `keys` has seen that others have written: 15 MB for 10,000 vectors of 384 numbers."""

    def __init__(self, path: Path, model: str) -> None:
        self._path = path
        self._model = model
        # Row n of the matrix is the vector of length 1 of the key that has n.
        self._vectors: tuple[dict[bytes, int], NDArray[np.float32]] | None = None

    def keys(self) -> set[bytes]:
        self._vectors = None
        with self._connected(read_only=True) as connection:
            rows = connection.execute("SELECT digest FROM vector WHERE model = ?", (self._model,))
            return {digest for (digest,) in rows}

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        matrix = np.array(list(vectors.values()), np.float32)
        matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
        with self._connected(read_only=False) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            stored = connection.execute(
                "SELECT length(data) FROM vector WHERE model = ? LIMIT 1", (self._model,)
            ).fetchone()
            if stored is not None:
                require_size(self._model, matrix.shape[1], stored[0] // matrix.itemsize)
            connection.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?)",
                [
                    (key, self._model, vector.tobytes())
                    for key, vector in zip(vectors, matrix, strict=True)
                ],
            )
        self._vectors = None

    def remove(self, keys: Iterable[bytes]) -> None:
        """Remove the vectors, those of other models too: the text that they stood for is gone."""
        gone = [(key,) for key in keys]
        if gone:
            with self._connected(read_only=False) as connection, connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("DELETE FROM vector WHERE digest = ?", gone)

    def cosines(
        self, vector: Sequence[float], limit: int, among: Container[bytes], also: Iterable[bytes]
    ) -> dict[bytes, float]:
        """Those of the `limit` vectors nearest to `vector` with a key in `among`, and of `also`."""
        rows, matrix = self._loaded()
        if not rows:
            return {}
        require_size(self._model, len(vector), matrix.shape[1])
        query = np.array(vector, np.float32)
        query /= max(float(np.linalg.norm(query)), 1e-12)
        # Not `@`: for a few milliseconds BLAS wakes threads that wait for busy cores.
        cosines = np.einsum("ij,j->i", matrix, query)
        found: dict[bytes, float] = {}
        keys = list(rows)
        for row in np.argsort(-cosines):
            if len(found) == limit:
                break
            if (key := keys[row]) in among:
                found[key] = float(cosines[row])
        return found | {key: float(cosines[rows[key]]) for key in also if key in rows}

    def _loaded(self) -> tuple[dict[bytes, int], NDArray[np.float32]]:
        if self._vectors is not None:
            return self._vectors
        with self._connected(read_only=True) as connection:
            rows = connection.execute(
                "SELECT digest, data FROM vector WHERE model = ?", (self._model,)
            ).fetchall()
            if len({len(data) for _, data in rows}) > 1:
                raise sqlite3.DatabaseError("its vectors are of different lengths")
            keys = [key for key, _ in rows]
            flat = np.frombuffer(b"".join(data for _, data in rows), np.float32)
            matrix = flat.reshape(len(keys), -1) if keys else flat.reshape(0, 1)
            lengths = np.linalg.norm(matrix, axis=1)
            if not np.all((lengths == 0) | (np.abs(lengths - 1) < _TOLERANCE)):
                raise sqlite3.DatabaseError("a vector is not as it was written")
        self._vectors = {key: row for row, key in enumerate(keys)}, matrix
        return self._vectors

    @contextmanager
    def _connected(self, *, read_only: bool) -> Iterator[sqlite3.Connection]:
        anew = f"unified-flow collections delete {self._path.stem}, then unified-flow index"
        with (
            store.index_failures(self._path, f"Make it anew: {anew}"),
            closing(store.connect(self._path, read_only=read_only)) as connection,
        ):
            yield connection
