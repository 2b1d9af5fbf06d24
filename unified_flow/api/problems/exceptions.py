"""What an exception that a route lets rise means to its client: the one table.

`app.py` registers it. What is not in it is a mistake of the service: the gate tells a person, and
the client has a 500. What keeps a question from its answer is `asking.py`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from interventions.errors import (
    AmbiguousIdError,
    ConflictError,
    NotFoundError,
    QueryError,
    QueueError,
)
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.problem import Problem
from unified_flow.errors import ConfigError, InputError, QueueFullError, RetrievalError
from unified_flow.errors.turns import NoSuchTurnError, NotResumableError, TurnBusyError


def _unavailable(exc: Exception) -> Problem:
    """What is kept cannot be read or written just now; whoever looks again would only tell the
    person the same once more."""
    return problems.unavailable()


def _impossible(exc: Exception) -> Problem:
    return problems.invalid("retry_impossible", HTTPStatus.CONFLICT)


PROBLEMS: dict[type[Exception], Callable[[Any], Problem]] = {
    InputError: lambda exc: problems.invalid(exc.reason, field_name=exc.field),
    ConfigError: _unavailable,
    RetrievalError: _unavailable,
    QueueFullError: _unavailable,
    QueueError: _unavailable,
    NotFoundError: lambda exc: problems.of_status(HTTPStatus.NOT_FOUND),
    AmbiguousIdError: lambda exc: problems.of_status(HTTPStatus.CONFLICT),
    ConflictError: lambda exc: problems.of_status(HTTPStatus.CONFLICT),
    QueryError: lambda exc: problems.invalid("field_wrong", field_name="query"),
    NoSuchTurnError: _impossible,
    NotResumableError: _impossible,
    TurnBusyError: lambda exc: problems.invalid("retry_busy", HTTPStatus.CONFLICT),
}


def of_exception(exc: Exception) -> Problem:
    """By its nearest class in the table. Raises KeyError for one that has none there."""
    known = next((cls for cls in type(exc).__mro__ if cls in PROBLEMS), type(exc))
    return PROBLEMS[known](exc)
