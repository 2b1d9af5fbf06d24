"""Which addresses may be asked."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.config.allowed_addresses import parse_allowed
from unified_flow.retrieval.web.addresses import allowed_addresses, port_is_allowed, refused

WEB = (80, 443)
PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "2606:2800:220:1:248:1893:25c8:1946",
    "2a00:1450:4001:80b::200e",
    "64:ff9b::5db8:d822",  # NAT64 of a public one: how an IPv6-only network reaches it
    "::ffff:93.184.216.34",
]
NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1",
    "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
    "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.1", "192.88.99.1",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
    "2001:db8::1", "100::1", "2001::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
    "::ffff:0:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::", "5f00::1", "4000::1", "3fff::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_asked(address: str) -> None:
    assert refused(ip_address(address)) is None
    assert allowed_addresses("example.org", 443, [address], WEB, []) == (
        [ip_address(address)],
        None,
    )


def test_what_is_not_public_is_not_asked() -> None:
    for address in NOT_PUBLIC:
        assert refused(ip_address(address)), address
        found, why = allowed_addresses("example.org", 443, [address], WEB, [])
        assert not found, address
        assert str(ip_address(address)) in str(why)


@given(st.ip_addresses(v=4))
def test_no_disguise_makes_a_private_address_public(address: IPv4Address) -> None:
    whole = int(address)
    forms = [0xFFFF << 32 | whole, 0x64FF9B << 96 | whole, 0x2002 << 112 | whole << 80]
    hidden = [ip_address((value).to_bytes(16, "big")) for value in forms]
    if refused(address):
        assert all(map(refused, hidden))


def test_one_private_address_among_public_ones_refuses_the_name() -> None:
    found, why = allowed_addresses("trap.example", 80, ["1.1.1.1", "10.0.0.1"], WEB, [])
    assert not found
    assert why == "10.0.0.1 is private or reserved"


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "asked"),
    [
        ("10.0.0.5", "x", 80, "10.0.0.5", True),
        ("10.0.0.5", "x", 9000, "10.0.0.5", True),
        ("10.0.0.5", "x", 80, "10.0.0.6", False),
        ("10.0.0.5", "x", 80, "::ffff:10.0.0.5", True),
        ("10.0.0.5:8080", "x", 8080, "10.0.0.5", True),
        ("10.0.0.5:8080", "x", 80, "10.0.0.5", False),
        ("10.0.0.0/8", "x", 80, "10.200.0.6", True),
        ("[::1]:8000", "x", 8000, "::1", True),
        ("::1", "x", 80, "::1", True),
        ("fd00::/8", "x", 80, "fd12::1", True),
        ("intranet.example", "intranet.example", 80, "10.0.0.5", True),
        ("Intranet.Example.", "intranet.example", 80, "10.0.0.5", True),
        ("intranet.example", "intranet.example.", 80, "10.0.0.5", True),
        ("server1", "server1", 80, "10.0.0.5", True),
        ("intranet.example", "evil.intranet.example", 80, "10.0.0.5", False),
        ("intranet.example:8080", "intranet.example", 8080, "10.0.0.5", True),
        ("intranet.example:8080", "intranet.example", 80, "10.0.0.5", False),
        ("intranet.example", "intranet.example", 80, "169.254.169.254", False),
        ("169.254.169.254", "intranet.example", 80, "169.254.169.254", True),
        ("site.example:8080", "site.example", 8080, "1.1.1.1", True),
        ("10.0.0.5:8080", "site.example", 8080, "1.1.1.1", False),
    ],
)
def test_what_the_configuration_allows(
    entry: str, host: str, port: int, address: str, asked: bool
) -> None:
    found, why = allowed_addresses(host, port, [address], WEB, [parse_allowed(entry)])
    assert bool(found) is asked
    assert (why is None) is asked


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.256", "http://10.0.0.5", "host:0", "host:70000", "host:x", "*", "[::1"]
)
def test_an_entry_that_is_none(entry: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        parse_allowed(entry)


def test_a_port_is_refused_before_the_name_is_asked() -> None:
    assert port_is_allowed("any.example", 443, WEB, [])
    assert not port_is_allowed("any.example", 22, WEB, [parse_allowed("other.example")])
    assert port_is_allowed("any.example", 22, WEB, [parse_allowed("10.0.0.1:22")])
