"""The records of a turn's journal, format version 4. A turn is a fold over them (fold.py).

Times are UTC; durations are milliseconds. `visit` counts the runs of one phase in one turn
from 1 (loops come back to a phase), `attempt` those within one visit (a policy may retry).
A field that this program does not know is kept (architecture/journal-versions.md).
"""

from __future__ import annotations

import os
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from interventions.times import utc_now

# 2: model_failed, history_read; decisions about begun calls and human input (turn_resumed).
# 3: each line ends with a checksum (lines.py).
# 4: and with its number; forks (turn_started), salvaged turns (turn_salvaged), turns that another
#    process has taken over (turn_taken_over).
VERSION = 4
SUMMED = 3
NUMBERED = 4
# These say which version writes from here on.
BEGINNINGS = ("turn_started", "turn_resumed", "turn_taken_over")


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class Event(Record):
    at: datetime = Field(default_factory=utc_now)


class Runner(Record):
    """The process that runs a turn, to name it to others who want the turn."""

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, process {self.pid}"


class TurnStarted(Event):
    """`runner` is the process that runs the turn. `asked_with` holds the settings that came with
    the question (flags of the command line), which hold for the whole turn; no secrets.
    `environment` is what the turn runs on (engine/environment.py), known of a killed turn too.
    Without `persist` nothing of the turn outlives its answer, or its intervention.

    `fork_of` is the turn of which this one is a fork, and `earlier_than` the turn before which an
    earlier one of the session stands for this one too. `copied` are the other turn's events that
    belong to this one, in the same line, so that there is all of a fork or nothing.
    """

    event: Literal["turn_started"] = "turn_started"
    version: int = VERSION
    turn_id: int
    session_id: str
    request_id: str
    user_id: str
    channel: str | None
    question: str
    policy: str
    config_digest: str
    runner: Runner | None = None
    asked_with: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    persist: bool = True
    fork_of: int | None = None
    earlier_than: int | None = None
    copied: list[dict[str, Any]] = []


class HumanInput(Record):
    """What a person gave to the call of this tool with these arguments: a grant (`once`, or kept
    for the `session` or for `always`), or an answer."""

    tool: str
    args: dict[str, Any]
    grant: Literal["once", "session", "always"] | None = None
    answer: str | None = None


class TurnResumed(Event):
    """A person lets the turn go on at `phase`; the loop counters restart.

    `rewound` drops the results of that phase and those after it. `edited` replaces the question
    (`question`) or sections, by name, for the phases still to come. `retry_of` is the intervention
    that this retries, `retry_phase` its phase; `note` closes it. `changed` lists what differs from
    when the turn stopped. `tools_done` names the unfinished calls, by their place in the plan, that
    count as done from now on.
    """

    event: Literal["turn_resumed"] = "turn_resumed"
    version: int = VERSION
    phase: str
    rewound: bool = False
    runner: Runner
    by: str
    via: str
    config_digest: str
    asked_with: dict[str, Any] = {}
    retry_of: str | None = None
    retry_phase: str | None = None
    note: str | None = None
    changed: list[str] = []
    edited: dict[str, Any] = {}
    tools_done: list[int] = []
    environment: dict[str, Any] = {}
    given: HumanInput | None = None


class TurnTakenOver(Event):
    """Another process goes on with a turn whose own is gone, without a person: the loop counters go
    on, too, and how often it happens is counted. Not so if it is the first of a run that was
    `dispatched` to it."""

    event: Literal["turn_taken_over"] = "turn_taken_over"
    version: int = VERSION
    runner: Runner
    dispatched: bool = False
    config_digest: str
    environment: dict[str, Any] = {}


class TurnAbandoned(Event):
    """A person gave the turn up; it is resumed only with an explicit phase."""

    event: Literal["turn_abandoned"] = "turn_abandoned"
    by: str
    reason: str


class Write(BaseModel):
    """A call of a writing tool. Not `done`: it began, and whether it had its effect is unknown. In
    the damaged part of a journal, as far as it can be read: `args` is empty where it cannot."""

    model_config = ConfigDict(frozen=True)

    call: int
    tool: str
    args: dict[str, Any] = {}
    done: bool = False


class TurnSalvaged(Event):
    """A person kept the turn up to a damaged line. `aside` is the file beside the journal with the
    rest, and `lines` how many lines that are; `calls` may have written."""

    event: Literal["turn_salvaged"] = "turn_salvaged"
    by: str
    aside: str
    lines: int
    calls: list[Write] = []


class PhaseStarted(Event):
    """`input_digest` is there for older versions, which refuse a line without it."""

    event: Literal["phase_started"] = "phase_started"
    phase: str
    visit: int
    attempt: int
    input_digest: str = ""
    model: str | None
    recipe_digest: str | None


class ModelCalled(Event):
    """`request_digest` covers everything that the model read; rules read no prompt, and have none.
    `reply` is its raw text. `left_out` counts passages and earlier turns that the prompt had no
    room for.
    """

    event: Literal["model_called"] = "model_called"
    phase: str
    model: str
    request_digest: str
    reply: Any
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    left_out: dict[str, int] = {}
    duration_ms: float


class ModelFailed(Event):
    """A call without a reply; it counts as a call. The phase's own event follows."""

    event: Literal["model_failed"] = "model_failed"
    phase: str
    model: str
    request_digest: str
    error_type: str
    duration_ms: float


class HistoryRead(Event):
    """The session's earlier turns (results.PriorTurn) as the phase read them, oldest first: the
    session may hold more when the turn is resumed or replayed."""

    event: Literal["history_read"] = "history_read"
    phase: str
    turns: Any


class ToolStarted(Event):
    """`call` is the request's place in the plan, from 0. `allowed_by` says why it may run."""

    event: Literal["tool_started"] = "tool_started"
    phase: str
    call: int
    tool: str
    goal_id: str
    args: dict[str, Any]
    access: list[str]
    allowed_by: str | None = None


class ToolCompleted(Event):
    event: Literal["tool_completed"] = "tool_completed"
    phase: str
    call: int
    output: Any
    duration_ms: float


class PhaseCompleted(Event):
    event: Literal["phase_completed"] = "phase_completed"
    phase: str
    visit: int
    output: Any
    duration_ms: float


class Limit(Record):
    """A loop that has reached its limit."""

    loop: str
    iterations: int
    limit: int


class PhaseFailed(Event):
    """All that is reported of the failure. `error_message`, `hint` and `cause` (the error
    behind this one) are redacted, as everything that a person reads. `environment` is what the
    phase ran on (commit, versions, digests), to be compared when the turn is resumed. `kind` says
    whether it may pass (errors/classification.py). `limit` is set if a loop's limit was the reason.
    `retry_after_s`: seconds until asking again makes sense, None if unknown. `retrieved` holds the
    passages that were found beside the turn, for a degraded answer. Older journals have no `stage`,
    `severity` or `hint`.
    """

    event: Literal["phase_failed"] = "phase_failed"
    phase: str
    visit: int
    attempt: int
    error_type: str
    error_message: str
    category: str
    code: str | None = None
    kind: str | None = None
    stage: str | None = None
    severity: str | None = None
    hint: str | None = None
    cause: str | None = None
    retry_after_s: float | None = None
    limit: Limit | None = None
    tool: str | None
    intervention_id: str | None
    admission: str | None
    action: str
    duration_ms: float
    environment: dict[str, Any] = {}
    retrieved: list[dict[str, Any]] = []

    @property
    def notified(self) -> bool:
        """Whether a person learns of it."""
        return self.intervention_id is not None or self.admission == "pending"


class GuardrailChecked(Event):
    """The guardrails' decision on the message (`pre`) or the reply (`post`); users without checks
    have none. `failed`: the check itself failed, which decides too.
    """

    event: Literal["guardrail_checked"] = "guardrail_checked"
    stage: Literal["pre", "post"]
    decision: Literal["block", "pass", "escalate"]
    reason: str
    confidence: float
    matched_rule: str | None
    failed: bool = False


class TurnInterrupted(Event):
    """The process or the task was stopped; no failure."""

    event: Literal["turn_interrupted"] = "turn_interrupted"
    phase: str | None
    reason: str


class TurnCompleted(Event):
    """`silenced`: a guardrail decided that the user gets no message."""

    event: Literal["turn_completed"] = "turn_completed"
    status: Literal["answered", "clarify", "silenced"]
    saved: bool
    duration_ms: float


class TextArrived(Event):
    """The answer so far, while a model writes it: for observers, never in a journal.

    The final answer may differ: validation may reject this draft.
    """

    event: Literal["text_arrived"] = "text_arrived"
    phase: str
    text: str


AnyEvent = Annotated[
    TurnStarted
    | TurnResumed
    | TurnTakenOver
    | TurnAbandoned
    | TurnSalvaged
    | PhaseStarted
    | HistoryRead
    | ModelCalled
    | ModelFailed
    | ToolStarted
    | ToolCompleted
    | PhaseCompleted
    | PhaseFailed
    | GuardrailChecked
    | TurnInterrupted
    | TurnCompleted,
    Field(discriminator="event"),
]
READER: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
Observed = AnyEvent | TextArrived


def this_process(by: str | None = None) -> Runner:
    """`by`: who asked for what it runs, if not its own user."""
    return _runner(by, os.getpid())


@lru_cache(maxsize=64)
def _runner(by: str | None, pid: int) -> Runner:
    from interventions.transitions import Actor  # late: a phase needs only the events

    actor = Actor.current(by=by)
    return Runner(user=actor.name, host=actor.host, pid=pid)
