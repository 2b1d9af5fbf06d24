"""Addresses off the public internet that the settings let the web tools ask."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_network

_WITH_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True)
class Allowed:
    """An entry of `allow_private`: a network or a host name, and one port or all."""

    network: str | None = None
    host: str | None = None
    port: int | None = None


def parse_allowed(entry: str) -> Allowed:
    """`10.0.0.5`, `10.0.0.0/8`, `[::1]:8080`, `intranet.example:8080`. Raises ValueError."""
    host, port = entry.strip(), None
    if found := _WITH_PORT.fullmatch(host):
        host, port = found["host"], int(found["port"])
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if port is None or 0 < port < 65536:
        with suppress(ValueError):
            return Allowed(network=str(ip_network(host, strict=False)), port=port)
        if host and not any(c in host for c in "/:@*[] ") and not _ends_in_number(host):
            return Allowed(host=named(host), port=port)
    raise ValueError(
        f"{entry!r} is no address, network or host name such as 10.0.0.5, 10.0.0.0/8, "
        "intranet.example:8080"
    )


def _ends_in_number(host: str) -> bool:
    """Then it is meant as an address, for browsers and resolvers alike."""
    return host.rstrip(".").rpartition(".")[2].isdigit()


def named(host: str) -> str:
    """The one way to write a host name."""
    return host.casefold().rstrip(".")
