"""Addresses off the public internet that the settings let the web tools ask."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network


@dataclass(frozen=True)
class Allowed:
    """An entry of `allow_private`: a network or a host name, and one port or all."""

    network: str | None = None
    host: str | None = None
    port: int | None = None


def parse_allowed(entry: str) -> Allowed:
    """`10.0.0.5`, `10.0.0.0/8`, `[::1]:8080`, `intranet.example:8080`. Raises ValueError."""
    text = entry.strip()
    host, port = _split(text)
    try:
        return Allowed(network=str(ip_network(host, strict=False)), port=port)
    except ValueError:
        if not host or any(c in host for c in "/:@*[] ") or _ends_in_number(host):
            raise ValueError(
                f"{entry!r} is no address, network or host name such as 10.0.0.5, 10.0.0.0/8, "
                "intranet.example:8080"
            ) from None
    return Allowed(host=named(host), port=port)


def _ends_in_number(host: str) -> bool:
    """Then it is meant as an address, for browsers and resolvers alike."""
    return host.rstrip(".").rpartition(".")[2].isdigit()


def _split(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} has a bracket without its end")
        port = rest[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        return text, None
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{port!r} is no port")
    return host, int(port)


def named(host: str) -> str:
    """The one way to write a host name."""
    return host.casefold().rstrip(".")
