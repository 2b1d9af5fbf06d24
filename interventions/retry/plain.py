"""Resumers without our types: `resume(turn_id, home, **options)`, which answers a mapping or None.

A program that wants to import nothing of this package writes one. It is given the options that
somebody used, under the names of RetryRequest's fields, and may answer what RetryResult holds,
under the names of `RetryResult.as_dict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from interventions.retry.contract import FAILED, RetryRequest, RetryResult

ALWAYS = {"intervention_id", "note", "by", "via"}
TEXTS = ("status", "response", "phase", "intervention_id", "message", "closed", "trouble")
SAID = {each.name for each in fields(RetryResult)} - {"more", "went_on_at"}


@dataclass(frozen=True)
class PlainResumer:
    resume: Callable[..., Any]

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        """Raises TypeError for an answer that is of no use, and what the resumer raises."""
        return told(self.resume(request.turn_id, home, **options(request)), request.turn_id)


def options(request: RetryRequest) -> dict[str, Any]:
    """What was not asked for is not handed on: not every resumer need know of it."""
    given = {each.name: getattr(request, each.name) for each in fields(request)}
    del given["turn_id"]
    return {name: value for name, value in given.items() if value or name in ALWAYS}


def told(answer: Any, turn_id: int) -> RetryResult:
    """Raises TypeError for what is neither a mapping nor None."""
    if answer is None:
        return RetryResult(turn_id)
    if isinstance(answer, RetryResult):
        return answer
    if not isinstance(answer, Mapping):
        raise TypeError(f"a resumer answers a mapping, not {type(answer).__name__}")
    said = {name: value for name, value in answer.items() if name in SAID}
    said.setdefault("turn_id", turn_id)
    said.setdefault("passed", answer.get("status") != FAILED)
    for name in ("changed", "difference"):
        said[name] = tuple(said.get(name) or ())
    said["message"] = said.get("message") or answer.get("error")
    for name in TEXTS:
        said[name] = None if said.get(name) is None else str(said[name])
    more = {str(name): v for name, v in answer.items() if name not in SAID and name != "from"}
    return RetryResult(**said, went_on_at=answer.get("from"), more=more)
