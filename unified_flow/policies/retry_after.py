"""When a server that said no wants to be asked again: its own word (RFC 9110, 10.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from unified_flow.errors import CircuitOpenError

DEFAULT_RETRY_AFTER_S = 1.0
# What a client is told at most: one that obeys a wrong date would never ask again.
LONGEST_RETRY_AFTER_S = 3600.0


def retry_after_s(error: Exception, now: datetime | None = None) -> float | None:
    """Seconds until it makes sense to ask again; None if nobody has said so.

    A server that limits the rate without saying until when means a second; one that is down or
    overloaded (503) need not know.
    """
    if isinstance(error, CircuitOpenError):
        return error.retry_after_s
    if not isinstance(error, httpx.HTTPStatusError):
        return None
    limited = error.response.status_code == httpx.codes.TOO_MANY_REQUESTS
    if not limited and error.response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
        return None
    unsaid = DEFAULT_RETRY_AFTER_S if limited else None
    said = error.response.headers.get("retry-after", "").strip()
    if said.isdecimal() and said.isascii() and len(said) < 10:
        return min(float(said), LONGEST_RETRY_AFTER_S)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return unsaid
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    left_s = (until - (now or datetime.now(UTC))).total_seconds()
    return min(max(0.0, left_s), LONGEST_RETRY_AFTER_S)
