"""The W3C trace context of what runs now: it comes with a request, and goes to servers."""

from __future__ import annotations

import re
from contextvars import ContextVar

HEADER = "traceparent"
_FORM = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)


def checked(header: str) -> str | None:
    """The header's value, None for one that is not well formed."""
    return header if _FORM.fullmatch(header) and not header.startswith("ff") else None


def trace_id() -> str | None:
    """32 hexadecimal digits; None where nobody traces."""
    found = _FORM.fullmatch(traceparent.get() or "")
    return found[1] if found else None
