"""Texts to vectors, through any OpenAI-compatible endpoint or a model file of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Protocol

import httpx

from unified_flow.errors import RetrievalError, UnifiedFlowError
from unified_flow.servers.connection_pool import new_blocking_client
from unified_flow.servers.llama_server import ALIAS, LocalServer
from unified_flow.servers.server_errors import status_error

BATCH = 32  # texts in one request
LOCAL_BATCH = 4  # a processor gains nothing by more, and each request must end within timeout_s
_ENDING_S = 0.5  # between the end of a connection and that of its process
_PERHAPS_TOO_LONG = {400, 413, 422, 500}  # 500 is llama.cpp's
_HINTS = {
    401: "set the variable that api_key_env under [vectors] names (OPENAI_API_KEY)",
    403: "set the variable that api_key_env under [vectors] names (OPENAI_API_KEY)",
    404: "mend model or base_url under [vectors]: has the server this model, and /v1?",
}


class TextRefusedError(RetrievalError):
    """The server refuses this text; it may take others."""

    def __init__(self, message: str, *, hint: str, text: str) -> None:
        super().__init__(message, hint=hint)
        self.text = text


class Embedder(Protocol):
    """`name` identifies the model: vectors of different models cannot be compared."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order, all of one length. Raises RetrievalError."""
        ...

    def close(self) -> None: ...


class HttpEmbedder:
    """`POST {base_url}/embeddings`. Blocking, as the index is; `timeout_s` is for one batch.
    `shown` names the model in errors."""

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
        self._shown = shown or model
        self._batch_size = batch
        self._timeout_s = timeout_s
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._key = api_key
        self._client = new_blocking_client(base_url, api_key, timeout_s)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            found += self._batch(list(texts[start : start + self._batch_size]))
        return found

    def close(self) -> None:
        self._client.close()

    def _batch(self, texts: list[str]) -> list[list[float]]:
        response = self._posted(texts)
        if response.status_code in _PERHAPS_TOO_LONG and len(texts) > 1:
            # One of them may be too long, or all of them together: each alone shows which.
            return [vector for text in texts for vector in self._batch([text])]
        if not response.is_success:
            raise self._refused(response, texts[0])
        try:
            rows = response.json()["data"]
            if all("index" in row for row in rows):  # without, some servers keep the order
                rows = sorted(rows, key=lambda row: row["index"])
            vectors = [[float(x) for x in row["embedding"]] for row in rows]
        except (ValueError, LookupError, TypeError) as exc:
            raise RetrievalError(
                f"{self._url} does not answer with embeddings: {exc}",
                hint="is it an OpenAI-compatible server, and its model one for embeddings?",
            ) from exc
        if len(vectors) != len(texts) or len({len(each) for each in vectors}) != 1:
            raise RetrievalError(f"{self._url} gave {len(vectors)} vectors for {len(texts)} texts")
        if not vectors[0] or not all(isfinite(x) for each in vectors for x in each):
            what = "vectors without numbers" if not vectors[0] else "numbers that are none (NaN)"
            raise RetrievalError(
                f"the embedding model {self._shown} gave {what}",
                hint=f"mend the model behind {self._url}; what is embedded already stays",
            )
        return vectors

    def _posted(self, texts: list[str]) -> httpx.Response:
        try:
            return self._client.post(self._url, json={"model": self.name, "input": texts})
        except httpx.ReadTimeout:
            raise RetrievalError(
                f"the embedding server {self._url} has not answered within {self._timeout_s:g} s"
                f" ({len(texts)} texts)",
                hint="raise timeout_s under [vectors], or take a smaller model; what is embedded"
                " already stays",
            ) from None
        except httpx.HTTPError as exc:
            raise RetrievalError(
                f"the embedding server {self._url} cannot be used: {exc or type(exc).__name__}",
                hint="start it, or mend base_url under [vectors] in unified_flow.toml",
            ) from None  # the original holds the key in its request

    def _refused(self, response: httpx.Response, text: str) -> RetrievalError:
        status = response.status_code
        # Its reason as status_error shows it: bounded, and without the key.
        reason = status_error(response, response.content, self._url, self._key, "").response.text
        message = f"the embedding server refused {self._shown}: status {status}: {reason!r}"
        if status in _PERHAPS_TOO_LONG:
            hint = "is the text too long for the model? Else mend the server, or [vectors]"
            return TextRefusedError(message, hint=hint, text=text)
        hint = _HINTS.get(status, "mend the server, or [vectors] in unified_flow.toml")
        return RetrievalError(message, hint=hint)


class LocalEmbedder:
    """A .gguf file, served by llama.cpp in a process of its own from the first use on."""

    def __init__(self, path: Path, *, start_timeout_s: float, timeout_s: float) -> None:
        self.name = _file_and_size(path)
        self._timeout_s = timeout_s
        self._server = LocalServer(
            path, context_tokens=2048, start_timeout_s=start_timeout_s, embedding=True
        )
        self._served: HttpEmbedder | None = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
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


def _file_and_size(path: Path) -> str:
    """Another file of the same name is another model."""
    try:
        return f"{path.name} ({path.stat().st_size} bytes)"
    except OSError:
        return path.name  # which `start` reports
