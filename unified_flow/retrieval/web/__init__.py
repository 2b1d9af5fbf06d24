"""Pages of the web: fetched within bounds, from public addresses, as text (architecture/web.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address

Address = IPv4Address | IPv6Address
MAX_CHARS = 16 * 1024 * 1024  # of the text of a page, whatever kind of page


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
