"""Interventions and turns over HTTP: reading them, every transition that the commands have, and
letting a turn go on. Everything here needs the triage token."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any, Literal, Self, get_type_hints

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from interventions.entry import Entry, worst_first
from interventions.health import Health
from interventions.queue import InterventionQueue
from interventions.retry.retries import entry_to_retry
from interventions.secrets.redaction import WHOLE, redact
from interventions.times import parse_duration, utc_now
from interventions.view.groups import entry_view
from interventions.view.query import parse
from unified_flow.api import problems
from unified_flow.api.dependencies import AppState, ExchangeDep, StateDep
from unified_flow.api.problems import ProblemError
from unified_flow.api.response_schemas import errors
from unified_flow.api.turns import retry
from unified_flow.engine.dead_turns import report_dead_turns
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import (
    NoSuchTurnError,
    NotResumableError,
    TurnBusyError,
    TurnStoppedError,
)
from unified_flow.lib.threads import wait_for
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.sections import written
from unified_flow.turns.turn import UNDER_WAY, Turn

router = APIRouter(tags=["triage"])
interventions = APIRouter(prefix="/interventions", responses=errors(404, 408, 409, 413, 415, 422))
VIA = "http"


async def queue_of(state: StateDep) -> InterventionQueue:
    return state.services.queue


QueueDep = Annotated[InterventionQueue, Depends(queue_of)]
By = Annotated[str | None, Field(min_length=1, max_length=100, description="who does it")]
Id = Annotated[str, Path(min_length=1, max_length=100, description="the id, or how it begins")]


class InterventionView(BaseModel):
    """As `interventions show --json`: the fields of every entry, and whatever else this one has."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    short_id: str
    state: str = Field(description="open, snoozed, resolved, dismissed")
    priority: str = Field(description="P0 is the most urgent")
    type: str
    severity: str
    phase: str
    tool: str | None
    error_type: str
    error_message: str
    session_id: str
    turn_id: int = Field(description="0: outside any turn")
    created_at: str
    first_seen: str
    last_seen: str
    occurrences: int
    version: int = Field(description="for `expected_version`")
    resolved_at: str | None
    resolution: str | None
    dismissed_at: str | None
    context: dict[str, Any]

    @classmethod
    def of(cls, entry: Entry) -> Self:
        return cls.model_validate(redact(entry_view(entry, utc_now())))


class InterventionList(BaseModel):
    interventions: list[InterventionView] = Field(description="as `interventions list --json`")


# Its fields are those of the command's `--json`.
_HEALTH: dict[str, Any] = {name: (kind, ...) for name, kind in get_type_hints(Health).items()}
QueueHealth = create_model("QueueHealth", **_HEALTH)


class JournalLine(BaseModel):
    """Who did what to an entry, and what it was before and after."""

    model_config = ConfigDict(extra="allow")

    at: str
    action: str
    id: str | None = None
    by: str | None = None
    via: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


class TransitionRequest(BaseModel):
    """`expected_version` refuses to act on an entry that somebody has changed since."""

    model_config = ConfigDict(extra="forbid")

    by: By = None
    expected_version: int | None = Field(default=None, ge=0)

    @property
    def keywords(self) -> dict[str, Any]:
        """The keywords of every transition of the queue."""
        return {"by": self.by, "via": VIA, "expected_version": self.expected_version}


class ResolveRequest(TransitionRequest):
    note: str = Field(min_length=1, max_length=2000, description="what the fix was")


class DismissRequest(TransitionRequest):
    note: str = Field(default="", max_length=2000)


class SnoozeRequest(TransitionRequest):
    """Exactly one of the two."""

    duration: str | None = Field(default=None, description="such as 30m, 4h, 2d")
    until_n_more: int | None = Field(default=None, ge=1, le=10**9)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.duration is None) == (self.until_n_more is None):
            raise ValueError("either duration or until_n_more")
        return self


class AssignRequest(TransitionRequest):
    owner: str | None = Field(max_length=100, description="null: nobody")


class RetryRequest(TransitionRequest):
    note: str | None = Field(
        default=None,
        max_length=2000,
        description="what was fixed; it closes the intervention if the retry succeeds, and answers"
        " the question that the turn stopped at",
    )


class ResumeTurnRequest(BaseModel):
    """For writes that the turn has begun or done: run them again, or take them as done."""

    model_config = ConfigDict(extra="forbid", strict=True)

    by: By = None
    note: str = Field(default="resumed over HTTP", min_length=1, max_length=2000)
    rerun_tools: bool = False
    tools_done: bool = False

    @property
    def to_resume(self) -> ResumeRequest:
        return ResumeRequest(via=VIA, **self.model_dump())


class RecoveredTurn(BaseModel):
    turn_id: int
    outcome: Literal["passed", "failed", "skipped"] = Field(
        description="skipped: the first one failed, or another process has gone on with it"
    )
    status: str | None = Field(default=None, description="of a turn that passed")


class Recovery(BaseModel):
    turns: list[RecoveredTurn] = Field(description="those that were cut off, the oldest first")


class RetriedTurn(BaseModel):
    """How the turn of a retried intervention ended."""

    status: str
    turn_id: int


class PhaseLine(BaseModel):
    """One visit of a phase; its time in milliseconds."""

    model_config = ConfigDict(frozen=True)

    name: str
    visit: int
    status: str
    duration_ms: float


class TurnView(BaseModel):
    """The question, what each phase wrote, how it ended. Times in milliseconds."""

    model_config = ConfigDict(frozen=True)

    turn_id: int
    status: str
    session_id: str
    request_id: str
    question: str
    started_at: str | None
    duration_ms: float
    policy: str
    saved: bool
    fork_of: int | None
    phases: list[PhaseLine]
    failed_phase: str | None
    intervention_id: str | None
    sections: dict[str, Any] = Field(description="by the name of the phase that wrote it")
    response: str | None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        parts = {"policy": turn.policy, "phases": turn.phases, "sections": written(turn.sections)}
        view = turn.as_row() | parts
        return cls.model_validate(redact(view) | {"response": redact(turn.response, WHOLE)})


@router.get("/turns/{turn}", responses=errors(404, 422))
def show_turn(
    state: StateDep, turn: Annotated[str, Path(min_length=1, max_length=100)]
) -> TurnView:
    """A turn as it is on disk, by its number or its request id. Needs the triage token."""
    found = wait_for(TurnArchive(state.services.turns).find(turn))
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return TurnView.of(found)


@router.post("/turns/recover", responses=errors(408, 413, 415, 422))
async def recover_turns(request: Request, state: StateDep, body: ResumeTurnRequest) -> Recovery:
    """Let every turn go on that was cut off: its process died, or it was stopped. One goes first;
    if it fails again, the others wait. Turns whose process died are reported as a failure."""
    services = state.services
    found = await TurnArchive(services.turns).cut_off()
    ids = sorted(row["turn_id"] for row in found)
    await report_dead_turns(services.turns, services.queue, services.query_log, among=ids)

    async def all_of_them() -> Recovery:
        recovered: list[RecoveredTurn] = []
        for turn_id in ids:
            tried = [each.outcome for each in recovered if each.outcome != "skipped"]
            recovered.append(
                await _recovered(state, turn_id, body)
                if not tried or tried[0] == "passed"
                else RecoveredTurn(turn_id=turn_id, outcome="skipped")
            )
        return Recovery(turns=recovered)

    return await state.running.while_connected(all_of_them(), request.receive)


async def _recovered(state: AppState, turn_id: int, body: ResumeTurnRequest) -> RecoveredTurn:
    try:
        resumed = await retry(state, turn_id, body.to_resume)
    except (TurnBusyError, NoSuchTurnError, TurnStoppedError):
        return RecoveredTurn(turn_id=turn_id, outcome="skipped")
    except NotResumableError:
        done = await _has_ended(state, turn_id)
        return RecoveredTurn(turn_id=turn_id, outcome="skipped" if done else "failed")
    except ProblemError:
        return RecoveredTurn(turn_id=turn_id, outcome="failed")
    return RecoveredTurn(turn_id=turn_id, outcome="passed", status=resumed.status)


async def _has_ended(state: AppState, turn_id: int) -> bool:
    """Whether another process has let it go on meanwhile, to its end."""
    with suppress(RetrievalError):  # it is damaged
        turn = await TurnArchive(state.services.turns).load(turn_id)
        return turn is not None and turn.status not in (*UNDER_WAY, "interrupted")
    return False


@router.post("/turns/{turn}/resume", responses=errors(404, 408, 409, 413, 415, 422))
async def resume(
    request: Request,
    state: StateDep,
    exchange: ExchangeDep,
    turn: Annotated[int, Path(ge=1)],
    body: ResumeTurnRequest,
) -> RetriedTurn:
    """Let a turn go on that failed or was cut off. 409 if it fails again, runs, or cannot go on."""
    resumed = await state.running.while_connected(
        retry(state, turn, body.to_resume, exchange.set_turn_line), request.receive
    )
    return RetriedTurn(status=resumed.status, turn_id=resumed.turn.turn_id)


@interventions.get("")
def list_interventions(
    queue: QueueDep,
    query: Annotated[str, Query(max_length=500, description="such as `sev:critical age:>1h`")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> InterventionList:
    """The open ones, worst and newest first; with `is:any` or `is:resolved` others, too."""
    found = parse(query).select(list(queue.entries()), utc_now())
    shown = worst_first(found)[:limit]
    return InterventionList(interventions=[InterventionView.of(entry) for entry in shown])


@interventions.get("/health", response_model=QueueHealth)
def queue_health(queue: QueueDep) -> Any:
    """As `interventions health --json`."""
    return queue.health()


@interventions.get("/{intervention_id}")
def show(queue: QueueDep, intervention_id: Id) -> InterventionView:
    """One, with its traceback, context and evidence."""
    return InterventionView.of(queue.find(intervention_id))


@interventions.get(
    "/{intervention_id}/journal",
    response_model=list[JournalLine],
    response_model_exclude_unset=True,
)
def journal(queue: QueueDep, intervention_id: Id) -> Any:
    """Who did what and when, oldest first."""
    return queue.journal(queue.find(intervention_id)["id"])


@interventions.post("/{intervention_id}/resolve")
def resolve(queue: QueueDep, intervention_id: Id, body: ResolveRequest) -> InterventionView:
    return InterventionView.of(queue.resolve(intervention_id, body.note, **body.keywords))


@interventions.post("/{intervention_id}/dismiss")
def dismiss(queue: QueueDep, intervention_id: Id, body: DismissRequest) -> InterventionView:
    return InterventionView.of(queue.dismiss(intervention_id, body.note, **body.keywords))


@interventions.post("/{intervention_id}/snooze")
def snooze(queue: QueueDep, intervention_id: Id, body: SnoozeRequest) -> InterventionView:
    duration = parse_duration(body.duration) if body.duration is not None else None
    if body.duration is not None and duration is None:
        raise ProblemError(problems.invalid("field_wrong", field_name="duration"))
    keywords = body.keywords | {"duration": duration, "until_n_more": body.until_n_more}
    return InterventionView.of(queue.snooze(intervention_id, **keywords))


@interventions.post("/{intervention_id}/reopen")
def reopen(queue: QueueDep, intervention_id: Id, body: TransitionRequest) -> InterventionView:
    return InterventionView.of(queue.reopen(intervention_id, **body.keywords))


@interventions.post("/{intervention_id}/assign")
def assign(queue: QueueDep, intervention_id: Id, body: AssignRequest) -> InterventionView:
    return InterventionView.of(queue.assign(intervention_id, body.owner, **body.keywords))


@interventions.post("/{intervention_id}/undo")
def undo(queue: QueueDep, intervention_id: Id, body: TransitionRequest) -> InterventionView:
    """Take back the last transition."""
    return InterventionView.of(queue.undo(intervention_id, **body.keywords)[1])


@interventions.post("/{intervention_id}/retry", responses=errors())
async def retry_turn(
    request: Request,
    state: StateDep,
    exchange: ExchangeDep,
    intervention_id: Id,
    body: RetryRequest,
) -> RetriedTurn:
    """Let its turn go on from the phase that failed. 409 if it fails again, or is closed."""
    queue = state.services.queue
    entry = await asyncio.to_thread(entry_to_retry, queue, intervention_id, body.expected_version)
    if not entry["turn_id"]:
        raise ProblemError(problems.invalid("retry_impossible", HTTPStatus.CONFLICT))
    resume = ResumeRequest(
        intervention_id=entry["id"],
        note=body.note or f"retried, and it got past {entry['phase']}",
        by=body.by,
        via=VIA,
        answer=body.note,
    )
    turn = retry(state, entry["turn_id"], resume, exchange.set_turn_line)
    resumed = await state.running.while_connected(turn, request.receive)
    return RetriedTurn(status=resumed.status, turn_id=resumed.turn.turn_id)


router.include_router(interventions)
