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
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ssl import SSLContext

import httpx

from unified_flow.config.allowed_addresses import named, parse_allowed
from unified_flow.config.tables import ResearchSettings
from unified_flow.errors import (
    AddressRefusedError,
    PageRefusedError,
    PageTimeoutError,
    PageUnusableError,
)
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.web import Page
from unified_flow.retrieval.web.addresses import Address, allowed_addresses, port_is_allowed
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
class Network:
    """`resolve` takes a host and a port and gives addresses as text, in the order to try them; it
    blocks, and raises OSError. `trust` says whose certificates count."""

    resolve: Callable[[str, int], Sequence[str]]
    trust: Callable[[], SSLContext] = trusted_context


def system_resolver(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def fetch(
    url: str,
    policy: ResearchSettings,
    *,
    stays: bool = False,
    network: Network = Network(system_resolver),
) -> Page:
    """The page at `url` as text. One that `stays` goes to no other host than its own and those of
    `policy.hosts`, so that a redirect carries nothing from there.

    Raises AddressRefusedError before anything is sent to an address that is not allowed,
    PageRefusedError and CaptchaError for a site that lets no program in, PageUnusableError for
    what is too large or no text, PageTimeoutError, ConfigError without the extra, and httpx's
    own errors for what the network or the server does.
    """
    deadline = asyncio.timeout(policy.timeout_s)
    try:
        async with deadline:
            return await _page(url, policy, stays, network)
    except TimeoutError as exc:
        if not deadline.expired():
            raise
        raise PageTimeoutError(
            f"{url} could not be had and read in {policy.timeout_s:g} s",
            url=url,
            hint="Is the site slow? Else raise research.timeout_s.",
        ) from exc


async def _page(url: str, policy: ResearchSettings, stays: bool, network: Network) -> Page:
    # The transport alone: a client would look at cookies and redirects by itself.
    async with httpx.AsyncHTTPTransport(verify=network.trust(), trust_env=False) as transport:
        client = _Client(transport, policy, network)
        reply, body = await client.follow_redirects(url, stays)
    final_url = str(reply.url)
    media = media_of(reply.headers.get("content-type", ""), body)
    html = decoded(final_url, body, media.charset) if media.is_html else ""
    if (wall := wall_of(url, final_url, reply.status_code, reply.headers, html)) is not None:
        raise wall
    _raise_for_status(reply)
    title, text = await page_text(final_url, body, media, html, policy.timeout_s)
    return Page(
        url=url,
        final_url=final_url,
        title=title,
        text=text,
        content_type=media.type,
        fetched_at=datetime.now(UTC),
        bytes=len(body),
    )


@dataclass(frozen=True)
class _Client:
    """A reply is a response whose body was read by us, within the policy's bounds."""

    transport: httpx.AsyncHTTPTransport
    policy: ResearchSettings
    network: Network

    async def follow_redirects(self, url: str, stays: bool) -> tuple[httpx.Response, bytes]:
        at = _parsed(url)
        hosts = {named(at.host), *map(named, self.policy.hosts)}
        for _ in range(self.policy.max_redirects + 1):
            reply, body = await self._request(at)
            location = reply.headers.get("location")
            if reply.status_code not in REDIRECTS or not location:
                return reply, body
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
                    hint=f'If it is meant: hosts = ["{at.host}"] under [research] in'
                    " unified_flow.toml",
                )
        raise PageUnusableError(
            f"{url} redirects more than {self.policy.max_redirects} times",
            url=url,
            hint="Name the page where the redirects end.",
        )

    async def _request(self, url: httpx.URL) -> tuple[httpx.Response, bytes]:
        """The reply of the first address that takes a connection."""
        *others, last = await self._addresses(url)
        for address in others:
            try:
                return await self._request_at(url, address)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # as browsers do, of a host with several addresses
        return await self._request_at(url, last)

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        host, ports = url.raw_host.decode("ascii"), self.policy.ports
        port = url.port or (443 if url.scheme == "https" else 80)
        allowed = [parse_allowed(entry) for entry in self.policy.allow_private]
        hint = f'If it is meant: allow_private = ["{url.netloc.decode("ascii")}"] under [research]'
        hint += " in unified_flow.toml"
        reason: str | None = f"port {port} is not allowed"
        if port_is_allowed(host, port, ports, allowed):
            try:
                found = await in_daemon_thread(partial(self.network.resolve, host, port))
            except (OSError, UnicodeError) as exc:
                said = getattr(exc, "strerror", None) or str(exc)
                raise httpx.ConnectError(
                    f"{host} is not known: {said} ({url})", request=httpx.Request("GET", url)
                ) from exc
            addresses, reason = allowed_addresses(host, port, found, ports, allowed)
        if reason is not None:
            raise AddressRefusedError(f"{url} is not fetched: {reason}", url=str(url), hint=hint)
        return addresses

    async def _request_at(self, url: httpx.URL, address: Address) -> tuple[httpx.Response, bytes]:
        """Send one request to that very address, with the name in TLS and in Host."""
        named_request = httpx.Request("GET", url)
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
            response = await self.transport.handle_async_request(request)
            response.request = named_request
            async with aclosing(response):
                return response, await self._body(response)
        except httpx.TransportError as exc:
            message = f"{str(exc) or type(exc).__name__} ({url})"
            raise type(exc)(message, request=named_request) from exc

    async def _body(self, response: httpx.Response) -> bytes:
        """The body of a response; nothing of a redirect's, for only its target counts."""
        if response.status_code in REDIRECTS and "location" in response.headers:
            return b""
        announced = response.headers.get("content-length", "")
        self._require_size(response.url, int(announced) if announced.isdigit() else 0)
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            self._require_size(response.url, len(body))
        encoding = response.headers.get("content-encoding", "")
        return body_of(str(response.url), encoding, bytes(body), self.policy.max_bytes)

    def _require_size(self, url: httpx.URL, size: int) -> None:
        if size > self.policy.max_bytes:
            most = self.policy.max_bytes / 1024 / 1024
            raise PageUnusableError(
                f"{url} is larger than {most:g} MiB", url=str(url), hint=NAME_A_SMALLER_PAGE
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


def _raise_for_status(reply: httpx.Response) -> None:
    """PageRefusedError, or httpx's own error with the host's name instead of its address."""
    if reply.is_success:
        return
    status, request = reply.status_code, reply.request
    said = f"{status} {httpx.codes.get_reason_phrase(status) or 'unknown status'}"
    if status in (401, 403):
        raise PageRefusedError(f"{reply.url} refuses: {said}", url=str(reply.url), hint=OPEN_IT)
    error = httpx.HTTPStatusError(
        f"{said} ({reply.url})", request=request, response=httpx.Response(status, request=request)
    )
    raise hinted(error, "Is the address right? Open it in a browser." if status < 500 else None)
