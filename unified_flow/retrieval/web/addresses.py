"""Which addresses may be fetched from: the public ones, and those that the configuration names.

Pure: nothing is resolved here. `allowed_addresses` decides about every address that a name
resolved to, because a name with one private address among public ones is a trap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from unified_flow.config.allowed_addresses import Allowed, named

Address = IPv4Address | IPv6Address
# Public by its number, and yet answered by the machine's own cloud host.
_CLOUD = {IPv4Address("168.63.129.16")}
# What some versions of `ipaddress` still take for global.
_NOT_GLOBAL = [
    ip_network(each)
    for each in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "3fff::/20")
]
_GLOBAL_UNICAST = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")
_EMBEDDING = (IPv6Network("::ffff:0:0:0/96"), IPv6Network("::/96"))


def port_is_allowed(host: str, port: int, ports: Iterable[int], allowed: Iterable[Allowed]) -> bool:
    """Before the name is resolved: an entry that names an address may still be about any host."""
    if port in ports:
        return True
    return any(_port_fits(entry, port) and entry.host in (None, named(host)) for entry in allowed)


def allowed_addresses(
    host: str, port: int, found: Sequence[str], ports: Iterable[int], allowed: Sequence[Allowed]
) -> tuple[list[Address], str | None]:
    """All addresses in `found`, or none and the reason why one is not allowed."""
    checked: list[Address] = []
    for text in found:
        try:
            address = ip_address(text)
        except ValueError:
            return [], f"{text!r} is no address"
        reason = refused(address)
        by_entry = any(_allows(entry, host, port, address) for entry in allowed)
        if reason is not None and not by_entry:
            return [], f"{address} is {reason}"
        if port not in ports and not by_entry:
            return [], f"port {port} is not allowed"
        checked.append(address)
    if not checked:
        return [], "it has no address"
    return checked, None


def refused(address: Address) -> str | None:
    """Why this address is not public, in a few words; None if it is."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "of one link only"
    if (inner := _inside(address)) is not None:
        reason = refused(inner)
        return f"{inner} in disguise, which is {reason}" if reason else None
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local, where clouds keep their metadata"
    if address.is_multicast:
        return "multicast"
    if address.is_unspecified:
        return "this machine"
    if address in _CLOUD:
        return "the cloud's own"
    is_global = address.is_global and not address.is_reserved
    if isinstance(address, IPv6Address):
        is_global = is_global and address in _GLOBAL_UNICAST
    if not is_global or any(address in network for network in _NOT_GLOBAL):
        return "private or reserved"
    return None


def _inside(address: Address) -> IPv4Address | None:
    """The IPv4 address that this one leads to: mapped, compatible, translated, NAT64 or 6to4."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    low = int(address) & 0xFFFFFFFF
    if address in _NAT64 or (low > 1 and any(address in net for net in _EMBEDDING)):
        return IPv4Address(low)
    return None


def _allows(entry: Allowed, host: str, port: int, address: Address) -> bool:
    if not _port_fits(entry, port):
        return False
    target = _inside(address) or address
    if entry.network is not None:
        network = ip_network(entry.network)
        return address in network or target in network
    # A name does not allow these: to allow the metadata of a cloud, write its address.
    special = target.is_link_local or target.is_multicast or target.is_unspecified
    return entry.host == named(host) and not special and target not in _CLOUD


def _port_fits(entry: Allowed, port: int) -> bool:
    return entry.port is None or entry.port == port
