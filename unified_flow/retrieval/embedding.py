"""Texts to vectors, through any OpenAI-compatible endpoint or a model file of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import hypot, isfinite
from pathlib import Path
from typing import Protocol

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


class Embedder(Protocol):
    """`name` identifies the model: vectors of different models cannot be compared. `batch` is how
    many texts at once suit it."""

    batch: int

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order, all of one length. Raises RetrievalError."""
        ...

    def close(self) -> None: ...


class HttpEmbedder:
    """`POST {base_url}/embeddings`, for callers that block, as the index does; `timeout_s` is for
    one request. `shown` names the model in errors."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None,
        timeout_s: float,
        *,
        shown: str | None = None,
        batch: int = BATCH,
    ) -> None:
        self.name = model
        self.batch = batch
        self._shown = f"the embedding model {shown or model}"
        self._timeout_s = timeout_s
        self._server = ServerClient(base_url, self._shown, api_key=api_key)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return wait_for(self._embedded(list(texts)))

    def close(self) -> None:
        wait_for(self._server.aclose())

    async def _embedded(self, texts: list[str]) -> list[Vector]:
        payload = {"model": self.name, "input": texts}
        try:
            _, body = await self._server.request("POST", "embeddings", self._timeout_s, payload)
        except httpx.HTTPStatusError as exc:
            if exc.response.status_code in _PERHAPS_TOO_LONG:
                if len(texts) > 1:  # one of them may be too long, or all of them together
                    return [vector for text in texts for vector in await self._embedded([text])]
                if len(texts[0]) > SHORTEST:
                    return [await self._in_halves(texts[0])]
            raise self._failed(exc) from exc
        except (httpx.TransportError, ReplyTooLargeError) as exc:
            raise self._failed(exc) from exc
        return self._vectors(body, len(texts))

    async def _in_halves(self, text: str) -> Vector:
        """Of a text that is too long for the model: the mean of both halves, so that all of it
        counts."""
        half = len(text) // 2
        middle = max(half, text.find(" ", half))  # -1 without a space
        halves = [text[:middle], text[middle:]]
        one, other = [_unit(vector) for half in halves for vector in await self._embedded([half])]
        return [(x + y) / 2 for x, y in zip(one, other, strict=True)]

    def _failed(self, exc: Exception) -> RetrievalError:
        kept = "what is embedded already stays"
        hint = getattr(exc, "hint", None)
        return RetrievalError(
            f"{self._shown} cannot be used: {exc}", hint=f"{hint} ({kept})" if hint else kept
        )

    def _vectors(self, body: bytes, wanted: int) -> list[Vector]:
        where = f"{self._server.endpoint}/embeddings"
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


class LocalEmbedder:
    """A .gguf file, served by llama.cpp in a process of its own from the first use on."""

    batch = LOCAL_BATCH

    def __init__(self, path: Path, *, start_timeout_s: float, timeout_s: float) -> None:
        self.name = _file_and_size(path)
        self._timeout_s = timeout_s
        self._server = LocalServer(
            path, context_tokens=2048, start_timeout_s=start_timeout_s, embedding=True
        )
        self._served: HttpEmbedder | None = None

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self._served is None or self._server.died():
            self._start()
        assert self._served is not None
        try:
            return self._served.embed(texts)
        except RetrievalError as exc:
            ended = self._server.died(_ENDING_S)
            if ended is None:
                raise
            raise RetrievalError(
                f"the embedding model {self.name} has ended: {ended}",
                hint="try again, it is started anew; if memory was short, take a smaller model",
            ) from exc

    def _start(self) -> None:
        try:
            address = self._server.start()
        except UnifiedFlowError as exc:
            raise RetrievalError(str(exc), hint=exc.hint) from exc
        self._close_client()
        self._served = HttpEmbedder(
            address.url, ALIAS, address.key, self._timeout_s, shown=self.name, batch=LOCAL_BATCH
        )

    @property
    def pid(self) -> int | None:
        """Of the process, None while there is none."""
        return self._server.pid

    def _close_client(self) -> None:
        if self._served is not None:
            self._served.close()
            self._served = None

    def close(self) -> None:
        self._close_client()
        self._server.stop()


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
    """Another file of the same name is another model."""
    try:
        return f"{path.name} ({path.stat().st_size} bytes)"
    except OSError:
        return path.name  # which `start` reports
