"""The three kinds of errors of the production mode (error-handling-architecture.md, "Future").

| kind | what it is | what helps |
|---|---|---|
| transient | a network, a store or a server that was away or slow for a moment | trying again |
| recoverable | a limit, or a reply that is of no use | trying again later, else a fallback |
| permanent | a wrong key, a model that does not exist, a broken file | a person |

The one answer to whether asking again may help: policies retry by it, and clients read it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from unified_flow import errors
from unified_flow.errors import CircuitOpenError
from unified_flow.errors.sqlite import is_locked

TIMEOUTS = (
    TimeoutError,
    httpx.TimeoutException,
    errors.GenerationTimeoutError,
    errors.PipelineTimeoutError,
    errors.ToolTimeoutError,
)

Kind = Literal["transient", "recoverable", "permanent"]

_PASSING_STATUS = (408, 425, 500, 502, 503, 504)
_UNUSABLE = (
    errors.EmptyReplyError,
    errors.CutReplyError,
    errors.NotJSONError,
    errors.SchemaMismatchError,
)
# What is full or paused now has room again later.
_LIMITS = (errors.CircuitOpenError, errors.QueueFullError, errors.NoTurnError)


def kind_of(error: BaseException) -> Kind:
    if isinstance(error, httpx.HTTPStatusError):
        return kind_of_status(error.response.status_code)
    if isinstance(error, (*TIMEOUTS, httpx.TransportError)) or _is_locked(error):
        return "transient"
    return "recoverable" if isinstance(error, (*_UNUSABLE, *_LIMITS)) else "permanent"


def kind_of_status(status: int) -> Kind:
    """Of an HTTP status that says no."""
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return "recoverable"
    return "transient" if status in _PASSING_STATUS else "permanent"


def _is_locked(error: BaseException) -> bool:
    """Whether another process holds the store; the stores say so in their own words."""
    return is_locked(error.__cause__ if isinstance(error, errors.RetrievalError) else error)


DEFAULT_RETRY_AFTER_S = 1.0
# The longest wait to tell a client: one that obeys a wrong date would never ask again.
LONGEST_RETRY_AFTER_S = 3600.0


def retry_after_s(error: Exception, now: datetime | None = None) -> float | None:
    """Seconds until it makes sense to ask again; None if no server has said so.

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
