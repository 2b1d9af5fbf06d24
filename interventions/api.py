"""What any program calls: `with intervene(...)` puts its failures into the queue, and lets them go
on to the caller; beside it the three functions that the core document names.

All but the standard library is loaded when something failed: until then `intervene` costs nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncContextDecorator, ContextDecorator, aclosing, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest
    from interventions.health import Health
    from interventions.queue import InterventionQueue

logger = logging.getLogger("interventions")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class intervene(ContextDecorator, AsyncContextDecorator):  # noqa: N801 - it reads as a verb, in `with` and as a decorator
    """An exception is put in the queue and goes on unchanged, with a note that names the entry.

    A context manager, `with` or `async with`, and a decorator of functions and generators, `async`
    or not. KeyboardInterrupt, SystemExit and cancellation are no failures. `turn_id` 0 means that
    there is no turn. An argument that cannot be used costs no failure: it is recorded with it
    (`InterventionRequest.from_exception`).
    """

    def __init__(
        self,
        *,
        phase: str,
        session_id: str = "unknown",
        turn_id: int = 0,
        type: str = "error",
        severity: str = "high",
        tool: str | None = None,
        error_category: str | None = None,
        request_id: str | None = None,
        context: dict[Any, Any] | None = None,
        queue: InterventionQueue | None = None,
        home: Path | str | None = None,
    ) -> None:
        kind = {"type": type, "severity": severity, "error_category": error_category}
        turn = {"session_id": session_id, "turn_id": turn_id, "request_id": request_id}
        self._known = {**kind, **turn, "phase": phase, "tool": tool, "context": context}
        self._queue, self._home = queue, home

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            self._record(error)

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            from asyncio import to_thread

            try:
                await to_thread(self._record, error)
            except RuntimeError:  # no thread can be had any more, or another library runs the loop
                self._record(error)

    def __call__(self, function: _Function) -> _Function:
        from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

        if iscoroutinefunction(function):
            return AsyncContextDecorator.__call__(self, function)
        if isasyncgenfunction(function):
            return cast(_Function, self._around_async_generator(function))
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
            with self:
                return (yield from function(*arguments, **named))

        return cast(_Function, call)

    def _around_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def call(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
            async with self, aclosing(function(*arguments, **named)) as inner:
                step = inner.asend(None)
                while True:
                    try:
                        item = await step
                    except StopAsyncIteration:
                        return
                    try:
                        step = inner.asend((yield item))
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - thrown in for the function
                        step = inner.athrow(error)

        return call

    def _record(self, error: Exception) -> None:
        from interventions.queue import record_failure

        intervention_id = record_failure(error, self._known, self._queue, self._home)
        if intervention_id is not None:
            with suppress(Exception):  # a frozen error takes no note
                error.add_note(f"intervention {intervention_id}")


def create_intervention_request(
    intervention: InterventionRequest | None = None,
    *,
    home: Path | str | None = None,
    queue: InterventionQueue | None = None,
    **fields: Any,
) -> bool:
    """Put a request, or one made of the fields; False only when it was dropped.

    As in the document's examples `session_id` and `turn_id` may be left out, and inside an
    `except` block the traceback of the exception at hand is captured. Raises ArgumentError.
    """
    from interventions.queue import queue_at

    if intervention is None:
        intervention = _request(fields)
    elif fields:
        raise TypeError("either a request or its fields, not both")
    place = queue if queue is not None else queue_at(home)
    return bool(place.put(intervention))


def resolve_intervention(
    intervention_id: str, resolution: str, *, home: Path | str | None = None
) -> None:
    """Mark an intervention as resolved. Raises NotFoundError or ConflictError."""
    from interventions.queue import queue_at

    entry = queue_at(home).resolve(intervention_id, resolution)
    logger.info("Intervention %s resolved: %s", entry["id"], entry["resolution"])


def check_queue_health(home: Path | str | None = None) -> Health:
    from interventions.queue import queue_at

    return queue_at(home).health()


def _request(fields: dict[str, Any]) -> InterventionRequest:
    from interventions.admission.capture import capture
    from interventions.admission.request import validated

    error_type = "LimitExceeded" if fields.get("type") == "limit_exceeded" else "Error"
    defaults = {"session_id": "unknown", "turn_id": 0, "error_message": ""}
    whole = {**defaults, "error_type": error_type, **fields}
    error = sys.exception()
    if error is not None and whole["error_type"] == type(error).__name__:
        whole = {**capture(error), **whole}
    return validated(whole)
