"""The contract of a tool: a name, typed arguments, what it touches, and a coroutine.

Inside `run`, `current_caller()` says for whom it runs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from unified_flow.errors import ConfigError
from unified_flow.errors.classification import Stage
from unified_flow.lib.printable import brief_repr
from unified_flow.turns.results import Claim

MAX_CLAIM_CHARS = 4000
BUILT_IN = "built in"
NAME = re.compile(r"\w[\w./:-]{0,127}")


class Access(StrEnum):
    READS = "reads"
    WRITES = "writes"
    NETWORK = "network"


class Arguments(BaseModel):
    """What a tool's arguments derive from: an unknown one is an error, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def claim(text: str, source: str, confidence: float = 1.0) -> Claim:
    """The text itself; what is longer than any reader needs ends in "…"."""
    if len(text) > MAX_CLAIM_CHARS:
        text = text[: MAX_CLAIM_CHARS - 1] + "…"
    return Claim(claim=text, confidence=confidence, source=source)


@dataclass(frozen=True)
class ToolOutput:
    """`result` is JSON-able and is journalled as it is; `claims` carry their sources."""

    result: Any
    claims: list[Claim] = field(default_factory=list)


@dataclass(frozen=True)
class Tool:
    """`stage` is the client-facing stage of its failures (system.md, "By stage").

    `arguments` forbids what it does not know (`Arguments`); `run` gets a checked instance of it.
    A tool with `WRITES` or `NETWORK` in its access runs only if allowed (permission_gate.py). A
    `personal` one reads or changes stored facts about the user. `source` says where it comes from,
    `server` which command or address answers it; `declared` is False for a function that does not
    say what it touches and is taken to write.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    access: frozenset[Access]
    run: Callable[[Any], Awaitable[ToolOutput]]
    stage: Stage = "answer_pipeline"
    timeout_s: float = 30.0
    source: str = BUILT_IN
    server: str = ""
    personal: bool = False
    declared: bool = True

    def __post_init__(self) -> None:
        """Raises ConfigError for a name that no model or person could write, and for no time."""
        if not NAME.fullmatch(self.name):
            raise ConfigError(
                f"a tool cannot be called {brief_repr(self.name, 60)}",
                hint="a name has letters, digits and . _ - / : and at most 128 of them",
            )
        if not 0 < self.timeout_s < math.inf:
            raise ConfigError(f"{self.name}: timeout_s is {self.timeout_s:g}, and not above 0")

    @property
    def definition(self) -> str:
        """A digest of what a person saw who allowed it; 16 hex digits."""
        seen = [self.name, self.description, self.arguments.model_json_schema(), self.server]
        return sha256(json.dumps(seen, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Caller:
    """`answer` is what a person said to this very call when the turn was resumed; `conversation`
    is what phase 0 says of the earlier turns (QueryAnalysis); `urls` are the addresses that the
    question and the pages of this turn name; `files` is the turn's folder for what is no text.

    `call_id` is the idempotency key of this call: the same when the turn is resumed and the call
    is made again, and no other call's.
    """

    user_id: str = "default"
    session_id: str = ""
    turn_id: int = 0
    answer: str | None = None
    conversation: Mapping[str, float] = field(default_factory=dict)
    urls: frozenset[str] = frozenset()
    files: Path | None = None
    call_id: str = ""


CALLER: ContextVar[Caller] = ContextVar("unified_flow.caller", default=Caller())  # noqa: B039


def current_caller() -> Caller:
    return CALLER.get()
