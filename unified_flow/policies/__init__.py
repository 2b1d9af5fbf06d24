"""What a failure does. The boundary asks the policy; the phases do not know that there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from unified_flow.classify import Classification


@dataclass(frozen=True)
class Failure:
    """One failed try of a phase. `attempt` counts the tries of this visit from 1."""

    phase: str
    tool: str | None
    attempt: int
    meaning: Classification
    error: Exception


@dataclass(frozen=True)
class Retry:
    """Try the phase again after `after_s` seconds."""

    after_s: float


@dataclass(frozen=True)
class Stop:
    """End the turn, with an intervention. `answer` is what the client's side makes of it."""

    answer: Literal["halt", "degrade", "silence"] = "halt"


Action = Retry | Stop


class Policy(Protocol):
    @property
    def name(self) -> str: ...

    def decide(self, failure: Failure) -> Action: ...
