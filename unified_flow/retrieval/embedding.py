"""Texts to vectors, through any OpenAI-compatible endpoint or a model file of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import hypot, isfinite
from pathlib import Path

import httpx

from unified_flow.errors import ReplyTooLargeError, RetrievalError, UnifiedFlowError
from unified_flow.lib.threads import wait_for
from unified_flow.servers.client import ServerClient
from unified_flow.servers.llama_server import ALIAS, LocalServer

BATCH = 32  # texts in one request
LOCAL_BATCH = 4  # a processor gains nothing by more, and each request must end within timeout_s
SHORTEST = 200  # characters of a text that no model finds too long
_ENDING_S = 0.5  # between the end of a connection and that of its process
_PERHAPS_TOO_LONG = {400, 413, 422, 500}  # 500 is llama.cpp's

Vector = list[float]


class Embedder:
    """For callers that block, as the index does. `name` identifies the model: vectors of different
    models cannot be compared. `batch` is how many texts at once suit it, `timeout_s` is for one
    request."""

    def __init__(
        self,
        name: str,
        timeout_s: float,
        batch: int,
        server: ServerClient | LocalServer,
    ) -> None:
        self.name = name
        self.batch = batch
        self._shown = f"the embedding model {name}"
        self._timeout_s = timeout_s
        self._client = server if isinstance(server, ServerClient) else None
        self._local = server if isinstance(server, LocalServer) else None

    @classmethod
    def at(cls, base_url: str, model: str, api_key: str | None, timeout_s: float) -> Embedder:
        """`POST {base_url}/embeddings`."""
        client = ServerClient(base_url, f"the embedding model {model}", api_key=api_key)
        return cls(model, timeout_s, BATCH, client)

    @classmethod
    def of_file(cls, path: Path, *, start_timeout_s: float, timeout_s: float) -> Embedder:
        """A .gguf file, served by llama.cpp in a process of its own from the first use on."""
        local = LocalServer(
            path, context_tokens=2048, start_timeout_s=start_timeout_s, embedding=True
        )
        return cls(_file_and_size(path), timeout_s, LOCAL_BATCH, local)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order, all of one length. Raises RetrievalError."""
        client = self._connected()
        try:
            return wait_for(self._embedded(client, list(texts)))
        except RetrievalError as exc:
            ended = self._local.died(_ENDING_S) if self._local is not None else None
            if ended is None:
                raise
            raise RetrievalError(
                f"{self._shown} has ended: {ended}",
                hint="try again, it is started anew; if memory was short, take a smaller model",
            ) from exc

    def close(self) -> None:
        if self._client is not None:
            wait_for(self._client.aclose())
        if self._local is not None:
            self._client = None
            self._local.stop()

    def _connected(self) -> ServerClient:
        """A process that does not run is started."""
        if self._local is not None and (self._client is None or self._local.died()):
            try:
                address = self._local.start()
            except UnifiedFlowError as exc:
                raise RetrievalError(str(exc), hint=exc.hint) from exc
            if self._client is not None:
                wait_for(self._client.aclose())
            self._client = ServerClient(address.url, self._shown, api_key=address.key)
        assert self._client is not None
        return self._client

    async def _embedded(self, client: ServerClient, texts: list[str]) -> list[Vector]:
        payload = {"model": self.name if self._local is None else ALIAS, "input": texts}
        try:
            _, body = await client.request("POST", "embeddings", self._timeout_s, payload)
        except httpx.HTTPStatusError as exc:
            if exc.response.status_code in _PERHAPS_TOO_LONG:
                if len(texts) > 1:  # one of them may be too long, or all of them together
                    return [v for text in texts for v in await self._embedded(client, [text])]
                if len(texts[0]) > SHORTEST:
                    return [await self._in_halves(client, texts[0])]
            raise self._failed(exc) from exc
        except (httpx.TransportError, ReplyTooLargeError) as exc:
            raise self._failed(exc) from exc
        return self._vectors(body, len(texts), f"{client.endpoint}/embeddings")

    async def _in_halves(self, client: ServerClient, text: str) -> Vector:
        """The vector of a text that is too long: the mean of both halves, so that all of it
        counts."""
        half = len(text) // 2
        middle = max(half, text.find(" ", half))  # -1 without a space
        halves = [text[:middle], text[middle:]]
        one, other = [_unit(v) for half in halves for v in await self._embedded(client, [half])]
        return [(x + y) / 2 for x, y in zip(one, other, strict=True)]

    def _failed(self, exc: Exception) -> RetrievalError:
        kept = "what is embedded already stays"
        hint = getattr(exc, "hint", None)
        return RetrievalError(
            f"{self._shown} cannot be used: {exc}", hint=f"{hint} ({kept})" if hint else kept
        )

    def _vectors(self, body: bytes, wanted: int, where: str) -> list[Vector]:
        try:
            rows = json.loads(body)["data"]
            if all("index" in row for row in rows):  # without, some servers keep the order
                rows = sorted(rows, key=lambda row: row["index"])
            vectors = [[float(x) for x in row["embedding"]] for row in rows]
        except (ValueError, LookupError, TypeError) as exc:
            raise RetrievalError(
                f"{where} does not answer with embeddings: {exc}",
                hint="is it an OpenAI-compatible server, and its model one for embeddings?",
            ) from exc
        if len(vectors) != wanted or len({len(each) for each in vectors}) != 1:
            raise RetrievalError(f"{where} gave {len(vectors)} vectors for {wanted} texts")
        if not vectors[0] or not all(isfinite(x) for each in vectors for x in each):
            what = "vectors without numbers" if not vectors[0] else "numbers that are none (NaN)"
            raise RetrievalError(
                f"{self._shown} gave {what}",
                hint=f"mend the model behind {where}; what is embedded already stays",
            )
        return vectors


def require_size(model: str, given: int, stored: int) -> None:
    """Raises RetrievalError for vectors that cannot be compared."""
    if given != stored:
        raise RetrievalError(
            f"the embedding model {model} now gives {given} numbers a text, and what is stored of"
            f" it has {stored}",
            hint="is another model served under the same name? Give each a name of its own under"
            " [vectors]",
        )


def _unit(vector: Vector) -> Vector:
    length = hypot(*vector) or 1.0
    return [x / length for x in vector]


def _file_and_size(path: Path) -> str:
    """A model by its file's name and size: another file of the same name is another model."""
    try:
        return f"{path.name} ({path.stat().st_size} bytes)"
    except OSError:
        return path.name  # which `start` reports
