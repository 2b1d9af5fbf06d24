"""What passes between a caller that retries and a program that can continue a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol

from interventions.entry import Entry, short_id
from interventions.errors import UnsolvedError
from interventions.plaintext import one_line

Scope = Literal["once", "session", "always"]
CallDecision = Literal["again", "done", "leave"]
FAILED, ANSWERED_BEFORE = "failed", "answered before"
ARGS_SHOWN = 400


@dataclass(frozen=True)
class BegunCall:
    """A call of a tool that writes which would be made again. `unfinished`: it had begun and not
    ended when the turn stopped, so that it may count as done; else it has written already."""

    turn_id: int
    tool: str
    args: Mapping[str, Any]
    unfinished: bool

    def __str__(self) -> str:
        """The call, redacted and short, and what is known of it, in lines."""
        from interventions.secrets.redaction import redact  # late: commands take 8 ms for it

        args = json.dumps(redact(dict(self.args)), ensure_ascii=False)
        shown = args if len(args) <= ARGS_SHOWN else args[: ARGS_SHOWN - 1] + "…"
        known = (
            "it had begun and not finished when the turn stopped;\n"
            "whether it wrote is unknown: look whether the effect is there"
            if self.unfinished
            else "it has written, and would be called again"
        )
        return f"turn {self.turn_id} called {one_line(self.tool)} with {one_line(shown)}\n{known}"


Ask = Callable[[BegunCall], CallDecision]
Edit = Callable[[str, str], str]
Started = Callable[[str, Sequence[str]], None]


@dataclass(frozen=True)
class RetryRequest:
    """Let a turn go on.

    `intervention_id` is the entry whose failure is retried, so that a failure of the resumed turn
    can name it (`retry_of`); None for a turn that is only counted on one. `note` closes the entry
    once its phase has completed; `answer` is what the person wrote, for a turn that asked one;
    `grant` lets a tool run that was refused; `from_phase` starts earlier; `rerun_tools`,
    `tools_done` and `ask` say what becomes of calls that may have written. `edit(name, text)` lets
    a person change the phase's input. `options` are those that the resumer's program registers, as
    they were given. `started(phase, changed)` is called before anything runs,
    with the phase at which the turn goes on and what has changed since it stopped.
    """

    turn_id: int
    intervention_id: str | None
    note: str
    answer: str | None = None
    grant: Scope | None = None
    from_phase: str | None = None
    rerun_tools: bool = False
    tools_done: bool = False
    by: str | None = None
    via: str = "library"
    ask: Ask | None = None
    edit: Edit | None = None
    started: Started | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RetryResult:
    """`status` is how the turn ended, FAILED if a phase failed, None if unknown. `passed`: the
    phase has completed. The turn went on at the phase `resumed_at`; `changed` is what differs.

    Of a failure: its `phase`, `message` and `intervention_id` (None if there is none), and its
    `difference` from the failure before. `closed` is the entry that was resolved, `waiting` another
    turn that needs the entry open, `trouble` the queue's own error.
    """

    turn_id: int
    status: str | None = None
    passed: bool = True
    resumed_at: str | None = None
    changed: Sequence[str] = ()
    response: str | None = None
    phase: str | None = None
    intervention_id: str | None = None
    message: str | None = None
    difference: Sequence[str] = ()
    closed: str | None = None
    waiting: int | None = None
    trouble: str | None = None

    @property
    def failed(self) -> bool:
        """A phase failed, the one that had failed or a later one."""
        return self.status == FAILED

    @property
    def failed_again(self) -> bool:
        return self.failed and not self.passed

    @property
    def is_unreported(self) -> bool:
        """A later phase failed, and no intervention says so."""
        return self.failed and self.passed and self.intervention_id is None

    @property
    def solved(self) -> bool:
        """Whether the entry can be closed: nothing in the result speaks against it."""
        return not (self.failed or self.trouble) and self.passed and self.waiting is None

    @property
    def why_open(self) -> str:
        """Why an entry is open that it did not close."""
        if self.trouble:
            return f"it could not be resolved: {self.trouble}"
        if self.waiting is not None:
            return f"turn {self.waiting} waits, too"
        if self.failed:
            return f"its turn failed in {self.phase or 'a phase'}"
        return "its phase has not completed"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`, where `from` is the phase at which it went on."""
        # Not `vars`: a resumer's own result may hold what JSON cannot.
        said = {each.name: getattr(self, each.name) for each in fields(RetryResult)}
        return {"from": said.pop("resumed_at"), **said}


class Resumer(Protocol):
    """One that has a `close()` may keep until then what its turns share."""

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        """Raises QueueError if the turn cannot be resumed, and then nothing has happened; whatever
        else it raises means that the turn failed again, as does a result that `failed_again`."""
        ...


@dataclass(frozen=True)
class RetriedEntry:
    """The entry after the retry, and the result."""

    entry: Entry
    result: RetryResult

    @property
    def resolved(self) -> bool:
        return self.entry["resolved_at"] is not None


class StillOpenError(UnsolvedError):
    """The turn went on, and that did not solve the entry."""

    def __init__(self, retried: RetriedEntry) -> None:
        result, name = retried.result, short_id(retried.entry["id"])
        message = f"{retried.entry['id']} stays open: {result.why_open}"
        hint = f"interventions show {name}"
        if result.failed_again:
            again = f"turn {result.turn_id} failed again: {result.message}"
            message = "\n  ".join((again, *result.difference))
        elif result.waiting is not None:
            hint = f"interventions retry {name} --all"
        elif result.trouble:
            hint = f"interventions retry {name}"
        super().__init__(message, hint=hint)
        self.retried = retried
