"""A turn: one question on its way through the phases, as a value. `fold.py` moves it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from interventions.times import to_text
from unified_flow.turns import results
from unified_flow.turns.events import GuardrailChecked, HumanInput, PhaseFailed, Runner, Write
from unified_flow.turns.sections import Sections

Status = Literal[
    "queued", "running", "answered", "clarify", "failed", "interrupted", "abandoned", "silenced"
]
# `queued`: it waits for a worker, where workers run the turns.
UNDER_WAY: tuple[Status, ...] = ("queued", "running")

FINISHED: tuple[Status, ...] = ("answered", "clarify", "abandoned", "silenced")

_KIND = {"llm_error": "LLM_ERROR", "parse_error": "LLM_ERROR", "retrieval_error": "RETRIEVAL_ERROR"}


@dataclass(frozen=True)
class Visit:
    """One run of one phase. `number` counts the runs of this phase from 1.

    `before` is what the phases before it had written, for going back. A visit whose process died
    is interrupted; one that a person went back behind is dropped.
    """

    phase: str
    number: int
    status: Literal["running", "completed", "failed", "interrupted", "dropped"]
    duration_ms: float = 0.0
    before: Sections = field(default_factory=Sections, repr=False)
    model: str | None = None
    recipe_digest: str | None = None


@dataclass(frozen=True)
class Counters:
    """How often the loops have turned. They restart when a person resumes the turn."""

    planning: int = 0
    retries: int = 0
    revisions: int = 0
    model_calls: int = 0


@dataclass(frozen=True)
class RetriedIntervention:
    """The intervention that the resumed turn is a retry of. `passed`: its phase has completed."""

    intervention_id: str
    phase: str
    by: str
    via: str
    note: str | None = None
    passed: bool = False


@dataclass(frozen=True)
class Turn:
    """One question on its way through the phases. Immutable; `apply` makes the next one.

    `failure` is where the turn has halted; `last_failure` outlives a resumption until its phase
    completes, to be compared with the next failure. `taken_over` counts the processes that went on
    with it since a person last did, `setbacks` those since then in which no phase has completed.
    """

    turn_id: int = 0
    session_id: str = ""
    request_id: str = ""
    user_id: str = "default"
    channel: str | None = None
    question: str = ""
    policy: str = "fail_fast"
    started_at: datetime | None = None
    status: Status = "running"
    sections: Sections = field(default_factory=Sections)
    history: tuple[results.PriorTurn, ...] | None = None
    visits: tuple[Visit, ...] = ()
    counters: Counters = field(default_factory=Counters)
    tools_done: dict[int, results.ToolResult] = field(default_factory=dict)
    failure: PhaseFailed | None = None
    last_failure: PhaseFailed | None = None
    saved: bool = False
    duration_ms: float = 0.0
    config_digest: str = ""
    asked_with: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict, repr=False)
    runner: Runner | None = None
    runs_since: datetime | None = None
    resumed: int = 0
    taken_over: int = 0
    setbacks: int = 0
    retry: RetriedIntervention | None = None
    writes: tuple[Write, ...] = ()
    given: HumanInput | None = None
    persist: bool = True
    fork_of: int | None = None
    earlier_than: int | None = None
    pre: GuardrailChecked | None = None
    post: GuardrailChecked | None = None
    retry_count: int = 0

    @property
    def should_respond(self) -> bool:
        """Whether the user gets a message (silent-errors-and-guardrails.md, "State")."""
        return self.error_message is None

    @property
    def error_message(self) -> str | None:
        """Why the user gets no message, in that document's words; never for the user."""
        for stage, check in (("PRE", self.pre), ("POST", self.post)):
            if check is not None and check.decision != "pass":
                word = "ESCALATED" if check.decision == "escalate" else "BLOCKED"
                return f"GUARDRAIL_{stage}_{word}: {check.reason}"
        if self.failure is not None and self.failure.action == "silence":
            return f"{_KIND.get(self.failure.category, 'ERROR')}: {self.failure.error_message}"
        return None

    @property
    def unchecked(self) -> bool:
        """Silenced only because a check itself failed, which a person can mend."""
        return any(check is not None and check.failed for check in (self.pre, self.post))

    @property
    def waits(self) -> bool:
        """Whether it waits for a person: it failed, could not be checked, or was escalated."""
        escalated = self.pre is not None and self.pre.decision == "escalate"
        return self.status == "failed" or (
            self.status == "silenced" and (self.unchecked or escalated)
        )

    @property
    def guardrail_pre_result(self) -> dict[str, Any] | None:
        """{decision, reason, confidence}; None without a check."""
        shown = {"decision", "reason", "confidence"}
        return self.pre.model_dump(include=shown) if self.pre is not None else None

    @property
    def failed_over(self) -> bool:
        """Whether a phase completed with another model than the one that failed, by policy."""
        failed = {(v.phase, v.model) for v in self.visits if v.status == "failed"}
        return not self.resumed and any(
            v.status == "completed" and phase == v.phase and model != v.model
            for v in self.visits
            for phase, model in failed
        )

    @property
    def phases(self) -> list[dict[str, Any]]:
        """Every visit as clients and logs see it: {name, visit, status, duration_ms}."""
        return [
            dict(name=v.phase, visit=v.number, status=v.status, duration_ms=v.duration_ms)
            for v in self.visits
        ]

    def as_row(self) -> dict[str, Any]:
        """How far it came, JSON-able, as lists and `--json` show it."""
        return {
            "turn_id": self.turn_id,
            "status": self.status,
            "session_id": self.session_id,
            "request_id": self.request_id,
            "question": self.question,
            "started_at": to_text(self.started_at) if self.started_at else None,
            "duration_ms": self.duration_ms,
            "saved": self.saved,
            "resumed": self.resumed,
            "taken_over": self.taken_over,
            "fork_of": self.fork_of,
            "failed_phase": self.failure.phase if self.failure else None,
            "stopped_in": self.stopped_in,
            "intervention_id": self.failure.intervention_id if self.failure else None,
        }

    @property
    def unfinished_writes(self) -> list[Write]:
        return [write for write in self.writes if not write.done]

    @property
    def is_final(self) -> bool:
        """The user has the reply, and nothing is left to do."""
        return self.status == "clarify" or (self.status == "answered" and self.saved)

    @property
    def stopped_in(self) -> str | None:
        """The phase that was running when the turn stopped, or that runs now."""
        last = self.visits[-1] if self.visits else None
        begun = last is not None and last.status in ("running", "interrupted")
        return last.phase if last is not None and begun else None

    def interrupted(self) -> Turn:
        """The turn after its process has gone without ending it."""
        *before, last = self.visits or (None,)
        if last is None or last.status != "running":
            return replace(self, status="interrupted")
        cut_off = replace(last, status="interrupted")
        return replace(self, status="interrupted", visits=(*before, cut_off))

    @property
    def response(self) -> str | None:
        """The text for the user: the answer, or a clarifying question."""
        if not self.should_respond:
            return None
        if self.status == "clarify":
            return self.clarification_question
        return self.sections.synthesis.response if self.sections.synthesis else None

    @property
    def clarification_question(self) -> str | None:
        if self.sections.planner and self.sections.planner.route == "clarify":
            return self.sections.planner.clarification_question
        if self.sections.reflection and self.sections.reflection.decision == "CLARIFY":
            return self.sections.reflection.clarification_question
        return None

    @property
    def citations(self) -> list[results.Citation]:
        draft = self.sections.synthesis if self.should_respond else None
        return list(draft.citations) if draft else []

    @property
    def abstained(self) -> bool:
        return self.sections.synthesis is not None and self.sections.synthesis.abstained

    @property
    def completed(self) -> str | None:
        """The phase that completed last; what comes next follows from it."""
        done = (visit.phase for visit in reversed(self.visits) if visit.status == "completed")
        return next(done, None)

    def visit_number(self, phase: str) -> int:
        """The number of the next completed run of `phase`."""
        ended = ("completed", "dropped")
        return 1 + sum(v.phase == phase and v.status in ended for v in self.visits)

    def is_past(self, phase: str) -> bool:
        """Whether the phase has completed, and nothing went back before it or failed in it
        since."""
        runs = (v.status for v in self.visits if v.phase == phase and v.status != "dropped")
        return next(iter(reversed(list(runs))), None) == "completed"

    def first_visit(self, phase: str) -> int | None:
        """The place in `visits` of the first run of `phase` that still counts."""
        places = enumerate(self.visits)
        return next((n for n, v in places if v.phase == phase and v.status != "dropped"), None)


NOT_BEGUN = Turn()  # made once: it has many defaults. Nobody may change its dicts in place
