"""Vectors in Qdrant: in a folder of our own, or on a server.

A point's id is made of what was embedded, so that the same text is never embedded twice, and a
text that changed is another point.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from interventions.home import make_private_folder
from unified_flow.errors import ConfigError, RetrievalError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

LOCK_WAIT_S = 10.0
PAUSE_S = 0.05
PAGE = 1000
_SHOWN = 200


def key_of(text: str) -> str:
    """The id of the point for `text`, as a UUID."""
    return str(uuid.UUID(bytes=sha256(text.encode()).digest()[:16]))


def collection_name(collection: str, embedder: str) -> str:
    """Vectors of two models cannot be compared, so each has a collection of its own."""
    return f"{collection}-{sha256(embedder.encode()).hexdigest()[:12]}"


class VectorStore:
    """One Qdrant collection. `place` is a folder, opened only while it is used, or an address;
    `collection` is that of the documents, `model` what its vectors are made with."""

    def __init__(
        self, place: Path | str, collection: str, model: str, api_key: str | None = None
    ) -> None:
        self._place = place
        self._collection = collection_name(collection, model)
        self._model = model
        self._api_key = api_key

    def keys(self) -> set[str]:
        """Every point there is. Raises RetrievalError, as everything here."""
        with self._open() as client:
            if not client.collection_exists(self._collection):
                return set()
            found: set[str] = set()
            offset = None
            while True:
                points, offset = client.scroll(
                    self._collection,
                    limit=PAGE,
                    offset=offset,
                    with_payload=False,
                    with_vectors=False,
                )
                found |= {str(point.id) for point in points}
                if offset is None:
                    return found

    def add(self, vectors: Mapping[str, Sequence[float]]) -> None:
        from qdrant_client import models

        if not vectors:
            return
        with self._open() as client:
            if not client.collection_exists(self._collection):
                size = len(next(iter(vectors.values())))
                distance = models.Distance.COSINE
                client.create_collection(
                    self._collection,
                    vectors_config=models.VectorParams(size=size, distance=distance),
                )
            self._require_size(client, next(iter(vectors.values())))
            points = [
                models.PointStruct(id=key, vector=list(vector)) for key, vector in vectors.items()
            ]
            client.upsert(self._collection, points=points, wait=True)

    def remove(self, keys: Iterable[str]) -> None:
        gone: list[int | str | uuid.UUID] = list(keys)
        if not gone:
            return
        with self._open() as client:
            client.delete(self._collection, points_selector=gone, wait=True)

    def nearest(self, vector: Sequence[float], limit: int) -> list[str]:
        """Keys, nearest first; [] where nothing is stored yet."""
        with self._open() as client:
            if not client.collection_exists(self._collection):
                return []
            self._require_size(client, vector)
            found = client.query_points(
                self._collection, query=list(vector), limit=limit, with_payload=False
            )
            return [str(point.id) for point in found.points]

    def _require_size(self, client: QdrantClient, vector: Sequence[float]) -> None:
        params = client.get_collection(self._collection).config.params.vectors
        size = getattr(params, "size", None)  # None for a collection that is not as we make them
        if size is not None and size != len(vector):
            raise RetrievalError(
                f"the embedding model {self._model} now gives {len(vector)} numbers a text, and"
                f" what is stored of it has {size}",
                hint="is another model served under the same name? Give each a name of its own in"
                " [vectors]",
            )

    @contextmanager
    def _open(self) -> Iterator[QdrantClient]:
        try:
            with self._alone(), closing(self._client()) as client:
                yield client
        except ImportError as exc:
            raise ConfigError(
                "vectors need qdrant-client", hint="pip install 'unified-flow[vectors]'"
            ) from exc
        except RetrievalError:
            raise
        except Exception as exc:  # the client has no base class for what it raises
            raise RetrievalError(
                f"the vector store {self._place} cannot be used: {_reason(exc)}",
                hint=_server_hint(exc)
                if isinstance(self._place, str)
                else f"remove {self._place} to have it made anew",
            ) from exc

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A folder is for one process at a time: Qdrant refuses a second one, we wait for it."""
        if isinstance(self._place, str):
            yield
            return
        make_private_folder(self._place)
        lock = FileLock(f"{self._place}.lock", timeout=LOCK_WAIT_S, mode=0o600)
        try:
            lock.acquire(poll_interval=PAUSE_S)
        except Timeout as exc:
            raise self._in_use() from exc
        try:
            yield
        finally:
            lock.release()

    def _client(self) -> QdrantClient:
        from qdrant_client import QdrantClient

        if isinstance(self._place, str):
            return QdrantClient(url=self._place, api_key=self._api_key, check_compatibility=False)
        try:
            return QdrantClient(path=str(self._place))
        except RuntimeError as exc:  # of a program that does not know our lock
            if "already accessed" in str(exc):
                raise self._in_use() from exc
            raise

    def _in_use(self) -> RetrievalError:
        return RetrievalError(
            f"the vectors in {self._place} are in use by another process",
            hint="try again, or let many processes share a Qdrant server: qdrant_url",
        )


def _reason(exc: Exception) -> str:
    status = getattr(exc, "status_code", None)  # of the client's UnexpectedResponse
    if status is None:
        return str(exc) or type(exc).__name__
    body = getattr(exc, "content", b"").decode("utf-8", "replace")
    return f"status {status}: {body[:_SHOWN]!r}"


def _server_hint(exc: Exception) -> str:
    status = getattr(exc, "status_code", None)
    if status in {401, 403}:
        return "set the variable that qdrant_key_env under [vectors] names"
    if status is None:
        return "start it, or mend qdrant_url under [vectors] in unified_flow.toml"
    return "is there a Qdrant server at qdrant_url, and what does its log say?"
