"""The three kinds of errors of the production mode (error-handling-architecture.md, "Future").

| kind | what it is | what helps |
|---|---|---|
| transient | a network, a store or a server that was away or slow for a moment | trying again |
| recoverable | a limit, or a reply that is of no use | trying again later, else a fallback |
| permanent | a wrong key, a model that does not exist, a broken file | a person |

The one answer to whether asking again may help: the policies try again by it, clients are told it.
"""

from __future__ import annotations

from typing import Literal

import httpx

from unified_flow import errors
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
