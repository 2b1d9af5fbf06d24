"""What can continue a turn and what can read turns, each found through an entry point group, and
what passes between them and their callers.

`interventions.resumers`: a Resumer. `interventions.resume_options`: a mapping of the options that
it takes besides (RetryRequest.options). `interventions.turns`: a TurnReader. The queue knows no
journals; a program that keeps some registers an object, or a class without arguments, that only
reads them. It may be called from any thread, and several times a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

from interventions.entry import Entry, is_open, short_id, short_ids
from interventions.errors import NoResumerError, UnsolvedError
from interventions.plaintext import one_line

RESUMERS_GROUP = "interventions.resumers"
OPTIONS_GROUP = "interventions.resume_options"
TURNS_GROUP = "interventions.turns"
_MEND = "mend or uninstall the package that registers it"

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
        """The result for `--json`; `from` is the phase at which the turn went on."""
        # Not `vars`: a resumer's own result may hold what JSON cannot.
        said = {each.name: getattr(self, each.name) for each in fields(RetryResult)}
        return {"from": said.pop("resumed_at"), **said}


class Resumer(Protocol):
    """What resumes turns. One with a `close()` may keep until then what turns share."""

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        """Raises QueueError if the turn cannot be resumed, and then nothing has happened; whatever
        else it raises means that the turn failed again, as does a result that `failed_again`."""


class StillOpenError(UnsolvedError):
    """The turn went on, and that did not solve the entry."""

    def __init__(self, entry: Entry, result: RetryResult) -> None:
        name = short_id(entry["id"])
        message = f"{entry['id']} stays open: {result.why_open}"
        hint = f"interventions show {name}"
        if result.failed_again:
            again = f"turn {result.turn_id} failed again: {result.message}"
            message = "\n  ".join((again, *result.difference))
        elif result.waiting is not None:
            hint = f"interventions retry {name} --all"
        elif result.trouble:
            hint = f"interventions retry {name}"
        super().__init__(message, hint=hint)
        self.result = result


def has_resumer() -> bool:
    """Whether one is registered; it is not loaded, which may take long."""
    from importlib.metadata import entry_points  # late: it costs as much as the whole of --help

    return bool(entry_points(group=RESUMERS_GROUP))


def find_resumer() -> Resumer:
    """Raises NoResumerError when none is installed, or it cannot be loaded or is none."""
    resumer: Resumer = _required(RESUMERS_GROUP, "the resumer", "continue")
    if not callable(getattr(resumer, "retry", None)):
        raise NoResumerError(f"the resumer {resumer!r} has no retry(home, request)", hint=_MEND)
    return resumer


def _required(group: str, what: str, does: str) -> Any:
    if (found := registered(group, what)) is None:
        hint = f"a program registers what can under the entry point group {group!r}; until then "
        hint += "mend the cause, ask again, and resolve with a note"
        raise NoResumerError(f"nothing that is installed can {does} a turn", hint=hint)
    return found


def registered(group: str, what: str) -> Any:
    """The object of an entry point group, None without one. Raises NoResumerError."""
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            found = point.load()
            return found() if isinstance(found, type) else found
        except Exception as error:  # a foreign module may raise anything
            why = f"{what} {point.name!r} ({point.value}) cannot be loaded: {error}"
            raise NoResumerError(why, hint=_MEND) from error
    return None


def done_with(resumer: Resumer) -> None:
    """Close the resumer, if it has kept anything for further turns."""
    if callable(close := getattr(resumer, "close", None)):
        close()


class LiveTurn(TypedDict, total=False):
    """One turn as its journal has it now; only `turn_id` and `status` are needed.

    `status` is running, answered, clarify, failed or interrupted. `ribbon` is that of
    `context.turn`: dicts of `name`, `status` (completed, running, failed, interrupted,
    not_run) and `duration_ms`. `started_at` and `changed_at`, when its journal grew last, are ISO
    8601 with a zone. `doing` says what runs right now (a tool, a model). `error` is redacted. Texts
    are shown as plain text.

    `steps` are what happened, in the order in which it began: dicts of `kind` (run: a person or
    another process went on with the turn; phase; model; tool), `name`, `status` (of a ribbon),
    `started_at`, `duration_ms` (None while it runs) and `text` (a model's reply, what a tool was
    asked). `answer` is the text for the user, `sources` what it rests on, a line each.
    """

    turn_id: int
    status: str
    session_id: str
    question: str
    started_at: str
    changed_at: str
    duration_ms: float | None
    ribbon: list[dict[str, Any]]
    doing: str
    error: str
    intervention_id: str | None
    steps: list[dict[str, Any]]
    answer: str
    sources: list[str]


class TurnReader(Protocol):
    """Damaged journals are left out, not raised; a home without turns has none."""

    def latest(self, home: Path, limit: int) -> Sequence[LiveTurn]:
        """The turns that were begun or went on last, running ones first, then the newest."""

    def turn(self, home: Path, turn_id: int) -> LiveTurn | None: ...

    def changes(self, home: Path, turn_id: int) -> Sequence[str]:
        """What differs now from that on which the turn stopped, a line each. May raise."""

    def as_pytest(self, entry: Entry, home: Path) -> str:
        """A test module that replays the entry's failure. Raises QueueError."""


def find_turn_reader() -> TurnReader:
    """Raises NoResumerError."""
    reader: TurnReader = _required(TURNS_GROUP, "the reader of turns", "read")
    return reader


def lost_turns(entries: Iterable[Entry], home: Path) -> tuple[str, str] | None:
    """For open entries that no retry can pass, because their turn is gone or its journal
    unreadable: what is wrong, and what to do about it. Raises NoResumerError.

    Entries that are marked as superseded say the same themselves."""
    reader = find_turn_reader()
    waiting = (e for e in entries if is_open(e) and e["turn_id"] and not e.get("superseded"))
    lost = [entry["id"] for entry in waiting if reader.turn(home, entry["turn_id"]) is None]
    if not lost:
        return None
    what = f"no retry can pass, their turns are gone or cannot be read: {short_ids(lost)}"
    ids = " ".join(map(short_id, lost))
    return what, f'ask their questions again; interventions dismiss {ids} --note "its turn is gone"'
