"""For whom a tool runs, for the tools that want to know: `calling()` inside a tool's `run`."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Caller:
    """`answer` is what a person said to this very call when the turn was resumed."""

    user_id: str = "default"
    session_id: str = ""
    turn_id: int = 0
    answer: str | None = None


CALLER: ContextVar[Caller] = ContextVar("unified_flow.caller", default=Caller())  # noqa: B039


def calling() -> Caller:
    return CALLER.get()
