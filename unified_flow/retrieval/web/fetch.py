"""`fetch(url, policy)`: one page, from addresses that were checked, within every bound.

The name of every hop is resolved here, each of its addresses checked, and the connection made to
the very address that was checked, with the name in TLS and in Host: DNS that changes between the
check and the use changes nothing. Nothing of the environment is used (proxies, .netrc), no cookie
and no authorization is ever sent.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import httpx

from unified_flow.config.allowed_addresses import named
from unified_flow.errors import (
    AddressRefusedError,
    PageRefusedError,
    PageTimeoutError,
    PageUnusableError,
)
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.web import Address, FetchPolicy, Page
from unified_flow.retrieval.web.addresses import allowed_addresses, port_is_allowed
from unified_flow.retrieval.web.body import (
    ACCEPT_ENCODING,
    NAME_A_SMALLER_PAGE,
    body_of,
    decoded,
    media_of,
    page_text,
)
from unified_flow.retrieval.web.walls import OPEN_IT, wall_of
from unified_flow.servers.client import hinted
from unified_flow.servers.connection_pool import trusted_context

REDIRECTS = frozenset({301, 302, 303, 307, 308})
LONGEST_URL = 2048
CONNECT_TIMEOUT_S = 10.0  # of one address, so that there is time for the next
_HOST = re.compile(rb"[a-z0-9._-]+|[0-9a-f:.]+", re.IGNORECASE)
_HEADERS = {
    "User-Agent": "unified-flow",
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, "
    "application/pdf;q=0.8, */*;q=0.1",
    "Accept-Encoding": ACCEPT_ENCODING,
    "Connection": "close",
}


@dataclass(frozen=True)
class PageReply:
    url: httpx.URL
    status: int
    headers: httpx.Headers
    body: bytes


async def fetch(url: str, policy: FetchPolicy | None = None, *, stays: bool = False) -> Page:
    """The page at `url` as text. One that `stays` goes to no other host than its own and those of
    `policy.hosts`, so that a redirect carries nothing from there.

    Raises AddressRefusedError before anything is sent to an address that is not allowed,
    PageRefusedError and CaptchaError for a site that lets no program in, PageUnusableError for
    what is too large or no text, PageTimeoutError, ConfigError without the extra, and httpx's
    own errors for what the network or the server does.
    """
    policy = policy or FetchPolicy()
    deadline = asyncio.timeout(policy.timeout_s)
    try:
        async with deadline:
            return await _page(url, policy, stays)
    except TimeoutError as exc:
        if not deadline.expired():
            raise
        raise PageTimeoutError(
            f"{url} could not be had and read in {policy.timeout_s:g} s",
            url=url,
            hint="Is the site slow? Else raise research.timeout_s.",
        ) from exc


async def _page(url: str, policy: FetchPolicy, stays: bool) -> Page:
    # The transport alone: a client would look at cookies and redirects by itself.
    trust = (policy.trust or trusted_context)()
    async with httpx.AsyncHTTPTransport(verify=trust, trust_env=False) as transport:
        reply = await _follow_redirects(transport, url, policy, stays)
    final_url = str(reply.url)
    media = media_of(reply.headers.get("content-type", ""), reply.body)
    html = decoded(final_url, reply.body, media.charset) if media.is_html else ""
    if (wall := wall_of(url, final_url, reply.status, reply.headers, html)) is not None:
        raise wall
    _raise_for_status(reply.url, reply.status)
    title, text = await page_text(final_url, reply.body, media, html, policy)
    return Page(
        url=url,
        final_url=final_url,
        title=title,
        text=text,
        content_type=media.type,
        fetched_at=datetime.now(UTC),
        bytes=len(reply.body),
    )


async def _follow_redirects(
    transport: httpx.AsyncHTTPTransport, url: str, policy: FetchPolicy, stays: bool
) -> PageReply:
    at = _parsed(url)
    hosts = {named(at.host), *policy.hosts}
    for _ in range(policy.max_redirects + 1):
        reply = await _request(transport, at, policy)
        location = reply.headers.get("location")
        if reply.status not in REDIRECTS or not location:
            return reply
        try:
            at = _parsed(str(at.join(location)))
        except httpx.InvalidURL as exc:
            raise PageUnusableError(
                f"{at} redirects to what is no address: {exc}", url=str(at)
            ) from exc
        if stays and named(at.host) not in hosts:
            raise AddressRefusedError(
                f"{url} is not followed to another host, {at.host}",
                url=str(at),
                hint=f'If it is meant: hosts = ["{at.host}"] under [research] in unified_flow.toml',
            )
    raise PageUnusableError(
        f"{url} redirects more than {policy.max_redirects} times",
        url=url,
        hint="Name the page where the redirects end.",
    )


def _parsed(url: str) -> httpx.URL:
    """Raises AddressRefusedError for what is no plain http or https address."""
    if len(url) > LONGEST_URL:
        raise AddressRefusedError(
            f"an address of {len(url)} characters is too long: {url[:80]}…", url=url[:LONGEST_URL]
        )
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise AddressRefusedError(f"{url!r} is no address: {exc}", url=url) from exc
    if found.scheme not in ("http", "https"):
        raise AddressRefusedError(
            f"{url!r} is not fetched: only http and https are",
            url=url,
            hint="Files are read with file.read.",
        )
    if not _HOST.fullmatch(found.raw_host):
        raise AddressRefusedError(f"{url!r} has no host", url=url)
    if found.userinfo:
        shown = str(found.copy_with(userinfo=b""))
        raise AddressRefusedError(
            f"{shown} is not fetched with a user name or a password in the address", url=shown
        )
    return found.copy_with(fragment=None)


async def _request(
    transport: httpx.AsyncHTTPTransport, url: httpx.URL, policy: FetchPolicy
) -> PageReply:
    """The reply of the first address that takes a connection."""
    *others, last = await _addresses(url, policy)
    for address in others:
        try:
            return await _request_at(transport, url, address, policy)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue  # as browsers do, of a host with several addresses
    return await _request_at(transport, url, last, policy)


async def _addresses(url: httpx.URL, policy: FetchPolicy) -> list[Address]:
    host = url.raw_host.decode("ascii")
    port = url.port or (443 if url.scheme == "https" else 80)
    if not port_is_allowed(host, port, policy.ports, policy.allow_private):
        raise AddressRefusedError(
            f"{url} is not fetched: port {port} is not allowed", url=str(url), hint=_hint(url)
        )
    resolve = policy.resolve or system_resolver
    try:
        found = await in_daemon_thread(partial(resolve, host, port))
    except (OSError, UnicodeError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise httpx.ConnectError(
            f"{host} is not known: {reason} ({url})", request=httpx.Request("GET", url)
        ) from exc
    addresses, reason = allowed_addresses(host, port, found, policy.ports, policy.allow_private)
    if reason is not None:
        raise AddressRefusedError(f"{url} is not fetched: {reason}", url=str(url), hint=_hint(url))
    return addresses


def _hint(url: httpx.URL) -> str:
    entry = url.netloc.decode("ascii")
    return f'If it is meant: allow_private = ["{entry}"] under [research] in unified_flow.toml'


def system_resolver(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _request_at(
    transport: httpx.AsyncHTTPTransport, url: httpx.URL, address: Address, policy: FetchPolicy
) -> PageReply:
    """One request, to that very address, with the name in TLS and in Host."""
    request = httpx.Request(
        "GET",
        url,
        headers=_HEADERS,
        extensions={
            "sni_hostname": url.raw_host.decode("ascii").rstrip("."),
            "timeout": {"connect": CONNECT_TIMEOUT_S},
        },
    )
    request.url = url.copy_with(host=str(address))
    try:
        response = await transport.handle_async_request(request)
        async with aclosing(response):
            body = await _body(response, url, policy)
    except httpx.TransportError as exc:
        message = f"{str(exc) or type(exc).__name__} ({url})"
        raise type(exc)(message, request=httpx.Request("GET", url)) from exc
    return PageReply(url, response.status_code, response.headers, body)


async def _body(response: httpx.Response, url: httpx.URL, policy: FetchPolicy) -> bytes:
    """Nothing is read of a redirect: it is where it leads that counts."""
    if response.status_code in REDIRECTS and "location" in response.headers:
        return b""
    announced = response.headers.get("content-length", "")
    _require_size(url, int(announced) if announced.isdigit() else 0, policy)
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        _require_size(url, len(body), policy)
    encoding = response.headers.get("content-encoding", "")
    return body_of(str(url), encoding, bytes(body), policy.max_bytes)


def _require_size(url: httpx.URL, size: int, policy: FetchPolicy) -> None:
    if size > policy.max_bytes:
        most = policy.max_bytes / 1024 / 1024
        raise PageUnusableError(
            f"{url} is larger than {most:g} MiB", url=str(url), hint=NAME_A_SMALLER_PAGE
        )


def _raise_for_status(url: httpx.URL, status: int) -> None:
    """PageRefusedError, or httpx's own error with the host's name instead of its address."""
    if 200 <= status < 300:
        return
    phrase = httpx.codes.get_reason_phrase(status) or "unknown status"
    if status in (401, 403):
        raise PageRefusedError(f"{url} refuses: {status} {phrase}", url=str(url), hint=OPEN_IT)
    request = httpx.Request("GET", url)
    error = httpx.HTTPStatusError(
        f"{status} {phrase} ({url})",
        request=request,
        response=httpx.Response(status, request=request),
    )
    raise hinted(error, "Is the address right? Open it in a browser." if status < 500 else None)
