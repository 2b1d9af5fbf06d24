"""The client of servers that speak the OpenAI protocol: JSON in both directions.

A request has a key, one deadline and a bounded reply. Nothing is retried. Errors are httpx's own,
so that code that sorts errors by type need not know this module; they say which server was asked
for what ("Connection refused" helps nobody who has two), why it refused and what to do.
A refusal (any status but 2xx) carries the server's own words, bounded and without the key; the
attached response keeps the few headers that a policy or a person needs (Retry-After, the request
id).
"""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import SecretStr

from unified_flow.errors import ConfigError, ReplyTooLargeError
from unified_flow.lib.compact_json import encode
from unified_flow.lib.trace_context import HEADER, traceparent
from unified_flow.servers.connection_pool import new_transport

Error = TypeVar("Error", bound=httpx.HTTPError)

_SHOWN = 300
SHORTEST_KEY = 6  # a shorter one, which local servers take, is found in ordinary words
_KEPT_HEADERS = ("retry-after", "content-type", "x-request-id")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|hf|xai|key)[-_][\w*.-]{6,}|(?<=[Bb]earer )[\w*.~+/=-]{6,}")
_WORD = re.compile(r"[^\s\"'<>,;:()\[\]{}]{6,}")

VENDORS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("vendors.toml").read_text(encoding="utf-8")
)
_HINTS: dict[str, str] = VENDORS["hints"]
LARGER_CONTEXT = _HINTS["larger_context"]
MAX_REPLY_BYTES = 4 * 1024 * 1024
_REASON_BYTES = 64 * 1024
_REASON_S = 2.0
_HEADERS = (
    (b"Accept", b"application/json"),
    (b"Accept-Encoding", b"identity"),
    (b"User-Agent", b"python-httpx/" + httpx.__version__.encode()),
)
_EXAMPLE = "http://127.0.0.1:8080/v1"


class ServerClient:
    """`model` is what the server is asked for, in error messages.

    It connects anew in each event loop; a closed one may be used again.
    """

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None) -> None:
        self.base_url = _checked_url(base_url)
        # As it may be shown: without a query, which can hold a secret.
        self.endpoint = str(self.base_url.copy_with(query=None))
        self._target = f"{model} at {self.endpoint}"
        self._key = SecretStr(api_key) if api_key else None
        self._connected: tuple[asyncio.AbstractEventLoop, httpx.AsyncBaseTransport] | None = None
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
        content = b"" if payload is None else encode(payload)
        stream = httpx.ByteStream(content)  # given a `content`, httpx would make the headers again
        headers = self._headers(content)
        request = httpx.Request(method, self._url(path), headers=headers, stream=stream)
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                response = await self._transport().handle_async_request(request)
                response.request = request
                try:
                    if response.is_success:
                        return response, await self._body(response, on_chunk)
                    raise self._refusal(response, await _reason(response))
                finally:
                    await response.aclose()
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            late = httpx.ReadTimeout(f"no complete reply in {timeout_s:g} s")
            raise transport_error(late, self._target, request) from exc
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
        if self.secret is None or len(self.secret) < SHORTEST_KEY:
            return body
        return body.replace(self.secret.encode(), b"[redacted]")

    def _refusal(self, response: httpx.Response, body: bytes) -> httpx.HTTPStatusError:
        """`body` is the beginning of what the server sent with its refusal."""
        reason = _redacted(message_in(body.decode("utf-8", "replace")), self.secret)[:_SHOWN]
        status = f"{response.status_code} {response.reason_phrase}".strip()
        message = f"{status} from the model server {self.endpoint}"
        if reason:
            message += f": {reason}"
        if response.is_redirect:
            message += " (redirects are not followed: they would carry the key elsewhere)"
        headers = {k: v for k, v in response.headers.items() if k in _KEPT_HEADERS}
        bounded = httpx.Response(
            response.status_code, headers=headers, text=reason, request=response.request
        )
        error = httpx.HTTPStatusError(message, request=response.request, response=bounded)
        return hinted(error, _status_hint(response.status_code, reason))

    def _transport(self) -> httpx.AsyncBaseTransport:
        loop = asyncio.get_running_loop()
        if self._connected is None or self._connected[0] is not loop:
            self._connected = loop, new_transport(self.base_url)
        return self._connected[1]

    def _url(self, path: str) -> httpx.URL:
        """Made once: to parse one costs a call as much as to write its body."""
        if path not in self._urls:
            base = self.base_url.path.rstrip("/")
            self._urls[path] = self.base_url.copy_with(path=f"{base}/{path}")
        return self._urls[path]

    def _headers(self, content: bytes) -> list[tuple[bytes, bytes]]:
        headers = [(b"Host", self.base_url.netloc), *_HEADERS]
        if content:
            headers.append((b"Content-Type", b"application/json"))
            headers.append((b"Content-Length", b"%d" % len(content)))
        if self.secret:
            headers.append((b"Authorization", b"Bearer " + self.secret.encode("ascii")))
        if trace := traceparent.get():
            headers.append((HEADER.encode(), trace.encode()))
        return headers

    async def _body(
        self, response: httpx.Response, on_chunk: Callable[[bytes], None] | None
    ) -> bytes:
        body = bytearray()
        assert isinstance(response.stream, httpx.AsyncByteStream)
        encoded = "content-encoding" in response.headers  # though none is asked for
        async for chunk in response.aiter_bytes() if encoded else response.stream:
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


def transport_error(
    error: httpx.TransportError, target: str, request: httpx.Request
) -> httpx.TransportError:
    """The same kind of error with its target in the message, and a hint."""
    reason = str(error) or type(error).__name__
    same = type(error)(f"{reason} (asked {target})", request=request)
    return hinted(same, _hint(error))


def _status_hint(status: int, reason: str) -> str | None:
    if is_too_long(status, reason):
        return f"{LARGER_CONTEXT} Fewer or shorter documents make the prompt shorter."
    if status == 503 and _says("loading", reason):
        return _HINTS["loading"]
    if status in (400, 404) and _says("no_model", reason):
        return _HINTS["no_model"]
    return _HINTS.get(str(min(status, 500)))


def is_too_long(status: int, reason: str) -> bool:
    """True if the prompt, with room for the answer, does not fit what the model can hold."""
    return status in (400, 413, 422, 500) and _says("too_long", reason)


def _says(what: str, reason: str) -> bool:
    return re.search(VENDORS["refusals"][what], reason, re.IGNORECASE) is not None


def message_in(reason: Any) -> str:
    """The message of an OpenAI-style error, parsed or as it came; gateways put JSON of any form
    into one, or plain text."""
    if isinstance(reason, str):
        with suppress(ValueError, RecursionError):
            reason = json.loads(reason)
    for key in ("error", "message", "detail"):
        if isinstance(reason, dict) and reason.get(key):
            reason = reason[key]
    shown = reason if isinstance(reason, str) else json.dumps(reason)
    printable = "".join(c if c.isprintable() else " " for c in shown)
    return " ".join(printable.split())


def _redacted(text: str, secret: str | None) -> str:
    text = _KEY_LIKE.sub("[redacted]", text)
    if not secret or len(secret) < SHORTEST_KEY:
        return text
    text = text.replace(secret, "[redacted]")
    # Servers like to echo the beginning or the end of a key that they refuse.
    return _WORD.sub(lambda m: "[redacted]" if m[0].strip("*.…") in secret else m[0], text)


def hinted(error: Error, hint: str | None) -> Error:
    """An error is shown with its `hint`, an attribute that httpx's classes lack."""
    vars(error)["hint"] = hint
    return error


def _hint(error: httpx.TransportError) -> str:
    match error:
        case httpx.TimeoutException():
            return "Is the server busy or still loading? Else raise the model's timeout_s."
        case httpx.ConnectError():
            return "Start the model server, or mend the base URL: unified-flow doctor tries it."
        case httpx.ProxyError():
            return "Mend the proxy in HTTP_PROXY or HTTPS_PROXY, or except the host in NO_PROXY."
    return "The connection broke off: the model server's own log says why."
