"""The process's HTTP connections to model servers: one pool per event loop, one SSL context.

`AsyncClient()` costs 16 ms, nearly all of it the certificates of the SSL context. They are
loaded once, and only when an https address is asked for.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from dataclasses import dataclass
from functools import cache
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx

from unified_flow.servers.connection_pools import SpreadTransport


@dataclass
class _Shared:
    client: httpx.AsyncClient
    users: int = 0


_Kind = tuple[bool, bool]
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Kind, _Shared]] = WeakKeyDictionary()


class Lease:
    """A share in the running loop's client; the last one released closes it."""

    def __init__(self, base_url: httpx.URL) -> None:
        self._kind: _Kind = (base_url.scheme == "https", not is_loopback(base_url.host))
        self.loop = asyncio.get_running_loop()
        clients = _shared.setdefault(self.loop, {})
        if self._kind not in clients:
            clients[self._kind] = _Shared(new_client(base_url))
        clients[self._kind].users += 1
        self.client = clients[self._kind].client

    async def release(self) -> None:
        clients = _shared[self.loop]
        shared = clients[self._kind]
        shared.users -= 1
        if shared.users == 0:
            del clients[self._kind]
            await shared.client.aclose()


def new_client(base_url: httpx.URL | str) -> httpx.AsyncClient:
    """A client of one's own for servers like `base_url`; its maker closes it.

    It follows no redirects (they would carry the key elsewhere) and has no time-outs of its
    own: a call has one deadline as a whole. Proxies of the environment are not used for
    loopback addresses.
    """
    url = httpx.URL(base_url)
    verify = trusted_context() if url.scheme == "https" else _plain_context()
    direct = is_loopback(url.host) or not getproxies()
    return httpx.AsyncClient(
        # httpx asks no proxy of the environment once it is given a transport.
        transport=SpreadTransport(verify) if direct else None,
        verify=verify,
        trust_env=not is_loopback(url.host),
        follow_redirects=False,
        timeout=None,
    )


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def trusted_context() -> ssl.SSLContext:
    """The certificates that this machine trusts; SSL_CERT_FILE names others."""
    return httpx.create_ssl_context()


@cache
def _plain_context() -> ssl.SSLContext:
    """Trusts no certificate at all: cheap to make, and safe should https ever be asked of it."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
