"""A language model behind any OpenAI-compatible chat-completions endpoint.

Errors: httpx's own for what the network and the server do (each also says which model was asked),
`ModelError`s for a reply that is of no use. Nothing is retried; a server that refuses a field of
the request is asked in other words (`dialect.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
from pydantic import SecretStr

from unified_flow.errors import ConfigError, ReplyTooLargeError
from unified_flow.models import ModelCall, ModelReply
from unified_flow.models.asked import estimated, is_cut, noted
from unified_flow.models.openai.completion import read_completion
from unified_flow.models.openai.dialect import Dialect, other_words
from unified_flow.models.openai.streaming import TextTap
from unified_flow.models.render import prompt
from unified_flow.servers.client import Lease
from unified_flow.servers.refusal import LARGER_CONTEXT, status_error, without_key
from unified_flow.servers.transport import named, too_slow

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 4 * 1024 * 1024
DEFAULT_TIMEOUT_S = 60.0


class OpenAIModel:
    """`timeout_s` bounds a call as a whole, from connecting to the last byte. `larger_context`
    is the advice to whoever's prompt does not fit.

    `client` is closed by whoever made it. Without one the model shares the loop's client
    (`client.Lease`) and `aclose` gives its share back; a closed model may be used again.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        model: str,
        client: httpx.AsyncClient | None = None,
        api_key: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        larger_context: str = LARGER_CONTEXT,
    ) -> None:
        self.name = name
        self.base_url = _checked_url(base_url)
        # As it may be shown: without a query, which can hold a secret.
        self.endpoint = str(self.base_url.copy_with(query=None))
        self.model = model
        self.timeout_s = timeout_s
        self._larger_context = larger_context
        self._key = SecretStr(api_key) if api_key else None
        self._client = client
        self._lease: Lease | None = None
        self._dialect = Dialect()
        self._urls: dict[str, httpx.URL] = {}

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self.endpoint!r}, {self.model!r})"

    @property
    def _asked(self) -> str:
        return f"asked {self.model} at {self.endpoint}"

    async def complete(self, call: ModelCall) -> ModelReply:
        """Raises what `request` and `read_completion` raise; `asked.py` labels it."""
        made = prompt(call)
        tap = None
        if call.stream is not None:
            tap = TextTap(call.stream.show, call.stream.field, self._secret()).feed
        with noted(self._label(call, made.messages)):
            response, body = await self._post(call, made.messages, tap)
            reply = read_completion(
                self._without_key(body),
                response.headers.get("content-type", ""),
                max_tokens=call.max_tokens,
                larger_context=self._larger_context,
            )
            self._tell_if_cut(reply, estimated(made.messages))
            return replace(reply, left_out=made.left_out)

    async def _post(
        self, call: ModelCall, messages: list[dict[str, str]], tap: Callable[[bytes], None] | None
    ) -> tuple[httpx.Response, bytes]:
        while True:
            # Calls run side by side: by the time of a refusal another may have learnt better words.
            spoken = self._dialect
            payload = spoken.payload(call, self.model, messages)
            try:
                return await self.request(
                    "POST", "chat/completions", self.timeout_s, payload, tap=tap
                )
            except httpx.HTTPStatusError as exc:
                other = other_words(spoken, exc.response.status_code, exc.response.text)
                if other is None:
                    raise
                if self._dialect == spoken:
                    logger.warning("%s; asked again: %s", exc, other)
                    self._dialect = other

    def _label(self, call: ModelCall, messages: list[dict[str, str]]) -> dict[str, Any]:
        return {
            "asked": self.model,
            "server": self.endpoint,
            "prompt_tokens_about": estimated(messages),
            "answer_tokens_at_most": call.max_tokens,
            "response_format": self._dialect.response_format,
            "timeout_s": self.timeout_s,
        }

    def _tell_if_cut(self, reply: ModelReply, about: int) -> None:
        if is_cut(about, reply.prompt_tokens):
            logger.warning(
                "%s at %s read %s tokens of a prompt of about %s: it cuts what its context cannot"
                " hold and tells nobody (Ollama: raise OLLAMA_CONTEXT_LENGTH)",
                self.model,
                self.endpoint,
                reply.prompt_tokens,
                about,
            )

    async def request(
        self,
        method: str,
        path: str,
        timeout_s: float,
        payload: dict[str, Any] | None = None,
        *,
        tap: Callable[[bytes], None] | None = None,
    ) -> tuple[httpx.Response, bytes]:
        """One request under the base URL; the response's head and its whole, bounded body.

        `tap` sees the body as it arrives.

        Raises httpx.HTTPStatusError for anything but a 2xx, httpx.ReadTimeout at the
        deadline, other httpx.TransportErrors as they come, ReplyTooLargeError.
        """
        client = self._connected()
        request = client.build_request(
            method,
            self._url(path),
            content=None if payload is None else json.dumps(payload).encode("ascii"),
            headers=self._headers(payload is not None),
        )
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                response = await client.send(request, stream=True, follow_redirects=False)
                try:
                    if not response.is_success:
                        raise await status_error(
                            response, self.endpoint, self._secret(), self._larger_context
                        )
                    return response, await self._body(response, tap)
                finally:
                    await response.aclose()
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise too_slow(self._asked, timeout_s, request) from exc
        except httpx.TransportError as exc:
            raise named(exc, self._asked, request) from exc
        finally:
            # An exception keeps its request; what it keeps must not hold the key.
            without_key(request)

    async def aclose(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None and lease.loop is asyncio.get_running_loop():
            await lease.release()

    def _connected(self) -> httpx.AsyncClient:
        if self._client is not None:
            return self._client
        if self._lease is None or self._lease.loop is not asyncio.get_running_loop():
            self._lease = Lease(self.base_url)
        return self._lease.client

    def _url(self, path: str) -> httpx.URL:
        """Made once: to parse one costs a call as much as to write its body."""
        if path not in self._urls:
            base = self.base_url.path.rstrip("/")
            self._urls[path] = self.base_url.copy_with(path=f"{base}/{path}")
        return self._urls[path]

    def _headers(self, has_body: bool) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if has_body:
            headers["Content-Type"] = "application/json"
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        return headers

    def _without_key(self, body: bytes) -> bytes:
        """A reply that repeats the key must carry it into no journal, queue or screen."""
        secret = self._secret()
        return body.replace(secret.encode(), b"[redacted]") if secret else body

    def _secret(self) -> str | None:
        return None if self._key is None else self._key.get_secret_value()

    async def _body(self, response: httpx.Response, tap: Callable[[bytes], None] | None) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if tap is not None:
                tap(chunk)
            if len(body) > MAX_REPLY_BYTES:
                raise ReplyTooLargeError(
                    f"{self.model} at {self.endpoint} sent more than {MAX_REPLY_BYTES:,} bytes",
                    hint="Check that the base URL is that of an OpenAI-compatible API.",
                )
        return bytes(body)


def _checked_url(base_url: str) -> httpx.URL:
    example = "http://127.0.0.1:8080/v1"
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as exc:
        raise ConfigError(
            f"the base URL of the model is no URL: {exc}", hint=f"Write it like {example}."
        ) from exc
    if url.userinfo:
        raise ConfigError(
            "the base URL of the model holds a user name or password",
            hint="Put the key into an environment variable or a file.",
        )
    if url.scheme not in {"http", "https"} or not url.host or (url.port or 1) > 65535:
        shown = str(url.copy_with(query=None))[:200]
        raise ConfigError(
            f"the base URL of the model is not an http address: {shown!r}",
            hint=f"Write it like {example}.",
        )
    return url
