"""The client of servers that speak the OpenAI protocol: JSON in both directions.

A request has a key, one deadline and a bounded reply. Errors are httpx's own, saying which server
was asked for what (`server_errors.py`). Nothing is retried.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
from pydantic import SecretStr

from unified_flow.errors import ConfigError, ReplyTooLargeError
from unified_flow.servers.connection_pool import new_client
from unified_flow.servers.server_errors import (
    LARGER_CONTEXT,
    status_error,
    timeout_error,
    transport_error,
)

MAX_REPLY_BYTES = 4 * 1024 * 1024
_REASON_BYTES = 64 * 1024
_REASON_S = 2.0
_EXAMPLE = "http://127.0.0.1:8080/v1"


class ServerClient:
    """`model` is what the server is asked for, in error messages; `larger_context` the advice
    for a prompt that does not fit.

    It connects anew in each event loop; a closed one may be used again.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        larger_context: str = LARGER_CONTEXT,
    ) -> None:
        self.base_url = _checked_url(base_url)
        # As it may be shown: without a query, which can hold a secret.
        self.endpoint = str(self.base_url.copy_with(query=None))
        self.larger_context = larger_context
        self._target = f"{model} at {self.endpoint}"
        self._key = SecretStr(api_key) if api_key else None
        self._connected: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._urls: dict[str, httpx.URL] = {}

    async def request(
        self,
        method: str,
        path: str,
        timeout_s: float,
        payload: dict[str, Any] | None = None,
        *,
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> tuple[httpx.Response, bytes]:
        """One request under the base URL; the response's head and its whole body.

        `timeout_s` bounds it as a whole, from connecting to the last byte. `on_chunk` sees the body
        as it arrives. Raises httpx.HTTPStatusError for anything but a 2xx, httpx.ReadTimeout at the
        deadline, other httpx.TransportErrors as they come, ReplyTooLargeError.
        """
        client = self._client()
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
                    if response.is_success:
                        return response, await self._body(response, on_chunk)
                    reason = await _reason(response)
                    raise status_error(
                        response, reason, self.endpoint, self.secret, self.larger_context
                    )
                finally:
                    await response.aclose()
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise timeout_error(self._target, timeout_s, request) from exc
        except httpx.TransportError as exc:
            raise transport_error(exc, self._target, request) from exc
        finally:
            # An exception keeps its request; what it keeps must not hold the key.
            request.headers.pop("Authorization", None)

    async def aclose(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None and connected[0] is asyncio.get_running_loop():
            await connected[1].aclose()

    @property
    def secret(self) -> str | None:
        return None if self._key is None else self._key.get_secret_value()

    def without_key(self, body: bytes) -> bytes:
        """A reply that repeats the key must carry it into no journal, queue or screen."""
        return body.replace(self.secret.encode(), b"[redacted]") if self.secret else body

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._connected is None or self._connected[0] is not loop:
            self._connected = loop, new_client(self.base_url)
        return self._connected[1]

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
        if self.secret:
            headers["Authorization"] = f"Bearer {self.secret}"
        return headers

    async def _body(
        self, response: httpx.Response, on_chunk: Callable[[bytes], None] | None
    ) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if on_chunk is not None:
                on_chunk(chunk)
            if len(body) > MAX_REPLY_BYTES:
                raise ReplyTooLargeError(
                    f"{self._target} sent more than {MAX_REPLY_BYTES:,} bytes",
                    hint="Check that the base URL is that of an OpenAI-compatible API.",
                )
        return bytes(body)


async def _reason(response: httpx.Response) -> bytes:
    """What arrives of a refusal's body in a moment: the status is known, only its reason is not."""
    body = bytearray()
    try:
        async with asyncio.timeout(_REASON_S):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= _REASON_BYTES:
                    break
    except (TimeoutError, httpx.TransportError):
        pass  # half a reason, or none, is no reason to hide the status
    return bytes(body[:_REASON_BYTES])


def _checked_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as exc:
        raise ConfigError(
            f"the base URL of the model is no URL: {exc}", hint=f"Write it like {_EXAMPLE}."
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
            hint=f"Write it like {_EXAMPLE}.",
        )
    return url
