"""The three kinds of errors of the production mode (error-handling-architecture.md, "Future").

| kind | what it is | what helps |
|---|---|---|
| transient | a network, a store or a server that was away or slow for a moment | trying again |
| recoverable | a limit, or a reply that is of no use | trying again later, else a fallback |
| permanent | a wrong key, a model that does not exist, a broken file | a person |
"""

from __future__ import annotations

from typing import Literal

import httpx

from unified_flow import errors
from unified_flow.policies import Failure
from unified_flow.sqlite_file import is_locked

Kind = Literal["transient", "recoverable", "permanent"]

_PASSING_STATUS = (408, 425, 500, 502, 503, 504)
_UNUSABLE = (
    errors.EmptyReplyError,
    errors.CutReplyError,
    errors.NotJSONError,
    errors.SchemaMismatchError,
)


def kind_of(failure: Failure) -> Kind:
    error = failure.error
    if isinstance(error, errors.PipelineTimeoutError | errors.CircuitOpenError):
        return "permanent"  # there is no time left, or it is known beforehand
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return "recoverable"
        return "transient" if status in _PASSING_STATUS else "permanent"
    if failure.timed_out or isinstance(error, httpx.TransportError) or _is_locked(error):
        return "transient"
    return "recoverable" if isinstance(error, _UNUSABLE) else "permanent"


def _is_locked(error: BaseException) -> bool:
    """Whether another process holds the store; the stores say so in their own words."""
    return is_locked(error.__cause__ if isinstance(error, errors.RetrievalError) else error)
