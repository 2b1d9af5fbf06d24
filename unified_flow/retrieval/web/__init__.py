"""Pages of the web: fetched within bounds, from public addresses, as text (architecture/web.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

from unified_flow.config.allowed_addresses import Allowed

if TYPE_CHECKING:
    from ssl import SSLContext

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""(host, port) to addresses as text, in the order to try them. Blocking; raises OSError."""

MAX_CHARS = 16 * 1024 * 1024  # of the text of a page, whatever kind of page


@dataclass(frozen=True)
class FetchPolicy:
    """The bounds of one page. Bytes are counted after decompression; `timeout_s` is for
    everything together: names, redirects, reading, extraction."""

    timeout_s: float = 20.0
    max_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 5
    ports: frozenset[int] = frozenset({80, 443})
    hosts: frozenset[str] = frozenset()  # of which a model may name any address
    allow_private: tuple[Allowed, ...] = ()
    resolve: Resolver | None = field(default=None, compare=False)  # None: the system's
    trust: Callable[[], SSLContext] | None = field(default=None, compare=False)  # likewise


@dataclass(frozen=True)
class Page:
    """`text` has Markdown's headings, lists and tables; `bytes` is what came, decompressed."""

    url: str
    final_url: str
    title: str
    text: str
    content_type: str
    fetched_at: datetime
    bytes: int
