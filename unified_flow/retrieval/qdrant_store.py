"""Vectors on a Qdrant server, which many machines can share."""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from unified_flow.errors import RetrievalError, needs_extra
from unified_flow.retrieval.embedding import require_size

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

PAGE = 1000
_HINT = (
    "is there a Qdrant server at qdrant_url, under [vectors] in unified_flow.toml? Where it wants a"
    " key (401, 403), qdrant_key_env there names the variable that holds it"
)
_OTHERS = 4  # times as many are asked for: some of the nearest may be of another folder


class QdrantStore:
    """One collection of the server at `url`: that of the documents' `collection` and the `model`,
    for vectors of two models cannot be compared. A point's id is its key."""

    def __init__(self, url: str, collection: str, model: str, api_key: str | None = None) -> None:
        self._url = url
        self._collection = f"{collection}-{sha256(model.encode()).hexdigest()[:12]}"
        self._model = model
        self._api_key = api_key

    def keys(self) -> set[bytes]:
        with self._connected() as client:
            if not client.collection_exists(self._collection):
                return set()
            found: set[bytes] = set()
            offset = None
            while True:
                points, offset = client.scroll(
                    self._collection,
                    limit=PAGE,
                    offset=offset,
                    with_payload=False,
                    with_vectors=False,
                )
                found |= {_key(point.id) for point in points}
                if offset is None:
                    return found

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        with self._connected() as client:
            from qdrant_client import models

            size = len(next(iter(vectors.values())))
            if not client.collection_exists(self._collection):
                params = models.VectorParams(size=size, distance=models.Distance.COSINE)
                client.create_collection(self._collection, vectors_config=params)
            self._require_size(client, size)
            points = [
                models.PointStruct(id=_id(key), vector=list(vector))
                for key, vector in vectors.items()
            ]
            client.upsert(self._collection, points=points, wait=True)

    def remove(self, keys: Iterable[bytes]) -> None:
        gone: list[int | str | uuid.UUID] = [_id(key) for key in keys]
        if gone:
            with self._connected() as client:
                client.delete(self._collection, points_selector=gone, wait=True)

    def cosines(
        self, vector: Sequence[float], limit: int, among: Container[bytes], also: Iterable[bytes]
    ) -> dict[bytes, float]:
        with self._connected() as client:
            from qdrant_client import models

            if not client.collection_exists(self._collection):
                return {}
            self._require_size(client, len(vector))
            near = client.query_points(
                self._collection, query=list(vector), limit=_OTHERS * limit, with_payload=False
            ).points
            found = [point for point in near if _key(point.id) in among][:limit]
            wanted: list[int | str | uuid.UUID] = [_id(key) for key in also]
            if wanted:
                these = models.Filter(must=[models.HasIdCondition(has_id=wanted)])
                found += client.query_points(
                    self._collection,
                    query=list(vector),
                    query_filter=these,
                    limit=len(wanted),
                    with_payload=False,
                ).points
            return {_key(point.id): point.score for point in found}

    def _require_size(self, client: QdrantClient, given: int) -> None:
        params = client.get_collection(self._collection).config.params.vectors
        size = getattr(params, "size", None)  # None for a collection that is not as we make them
        if size is not None:
            require_size(self._model, given, size)

    @contextmanager
    def _connected(self) -> Iterator[QdrantClient]:
        with needs_extra("qdrant_url", "qdrant"):
            from qdrant_client import QdrantClient
        try:
            client = QdrantClient(url=self._url, api_key=self._api_key, check_compatibility=False)
            with closing(client):
                yield client
        except RetrievalError:
            raise
        except Exception as exc:  # the client has no base class for what it raises
            said = " ".join(str(exc).split()) or type(exc).__name__
            raise RetrievalError(
                f"the vector store {self._url} cannot be used: {said}", hint=_HINT
            ) from exc


def _id(key: bytes) -> str:
    return str(uuid.UUID(bytes=key))


def _key(point: int | str | uuid.UUID) -> bytes:
    return uuid.UUID(str(point)).bytes
