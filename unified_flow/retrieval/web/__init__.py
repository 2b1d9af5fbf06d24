"""Pages of the web: fetched within bounds, from public addresses, as text (architecture/web.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
