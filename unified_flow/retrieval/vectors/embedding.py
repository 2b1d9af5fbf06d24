"""Texts to vectors, through any OpenAI-compatible endpoint or a model file of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Protocol

import httpx

from unified_flow.errors import RetrievalError, UnifiedFlowError
from unified_flow.models.client import is_loopback
from unified_flow.models.local.server import ALIAS, LocalServer

BATCH = 32  # texts in one request
_SHOWN = 200


class Embedder(Protocol):
    """`name` tells vectors of one model from those of another, which cannot be compared."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order, all of one length. Raises RetrievalError."""
        ...

    def close(self) -> None: ...


class HttpEmbedder:
    """`POST {base_url}/embeddings`. Blocking; `timeout_s` is for one batch."""

    def __init__(self, base_url: str, model: str, api_key: str | None, timeout_s: float) -> None:
        self.name = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(
            headers=headers,
            timeout=timeout_s,
            follow_redirects=False,
            trust_env=not is_loopback(httpx.URL(base_url).host),
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            found += self._batch(list(texts[start : start + BATCH]))
        return found

    def close(self) -> None:
        self._client.close()

    def _batch(self, texts: list[str]) -> list[list[float]]:
        try:
            response = self._client.post(self._url, json={"model": self.name, "input": texts})
            response.raise_for_status()
            rows = sorted(response.json()["data"], key=lambda row: row["index"])
            vectors = [[float(x) for x in row["embedding"]] for row in rows]
        except httpx.HTTPStatusError as exc:
            raise RetrievalError(
                f"the embedding server refused {self.name}: status {exc.response.status_code}:"
                f" {exc.response.text[:_SHOWN]!r}",
                hint="mend [vectors] in unified_flow.toml, or the server",
            ) from None  # the original holds the key in its request
        except httpx.HTTPError as exc:
            raise RetrievalError(
                f"the embedding server {self._url} cannot be used: {exc or type(exc).__name__}",
                hint="start it, or mend [vectors] in unified_flow.toml",
            ) from None
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
                f"the embedding model {self.name} gave {what}",
                hint=f"mend the model behind {self._url}; what is embedded already stays",
            )
        return vectors


class LocalEmbedder:
    """A .gguf file, served by llama.cpp in a process of its own from the first use on."""

    def __init__(self, path: Path, *, start_timeout_s: float, timeout_s: float) -> None:
        self.name = path.name
        self._timeout_s = timeout_s
        self._server = LocalServer(
            path, context_tokens=2048, start_timeout_s=start_timeout_s, embedding=True
        )
        self._served: HttpEmbedder | None = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._served is None or self._server.died():
            try:
                address = self._server.start()
            except UnifiedFlowError as exc:
                raise RetrievalError(str(exc), hint=exc.hint) from exc
            self.close_client()
            self._served = HttpEmbedder(address.url, ALIAS, address.key, self._timeout_s)
        return self._served.embed(texts)

    def close_client(self) -> None:
        if self._served is not None:
            self._served.close()
            self._served = None

    def close(self) -> None:
        self.close_client()
        self._server.stop()
