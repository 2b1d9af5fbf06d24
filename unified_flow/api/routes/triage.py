"""The interventions over HTTP: looking, and every transition that the commands have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from interventions.entry import Entry, worst_first
from interventions.queue import InterventionQueue
from interventions.retry.retries import entry_to_retry
from interventions.times import parse_duration, utc_now
from interventions.view.query import parse
from unified_flow.api.context import OfRequest, Served, Serving, for_triage
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.rendering import ProblemError
from unified_flow.api.problems.schemas import errors
from unified_flow.api.routes.retrying import retried
from unified_flow.api.views import InterventionView, RetriedView

router = APIRouter(
    prefix="/interventions",
    tags=["triage"],
    dependencies=[Depends(for_triage)],
    responses=errors(404, 408, 409, 413, 415, 422),
)
VIA = "http"
Id = Annotated[str, Path(min_length=1, max_length=100, description="the id, or how it begins")]


class Action(BaseModel):
    """`expected_version` refuses to act on what somebody changed meanwhile."""

    model_config = ConfigDict(extra="forbid")

    by: str | None = Field(default=None, min_length=1, max_length=100, description="who does it")
    expected_version: int | None = Field(default=None, ge=0)


class Resolving(Action):
    note: str = Field(min_length=1, max_length=2000, description="what was the fix")


class Dismissing(Action):
    note: str = Field(default="", max_length=2000)


class Snoozing(Action):
    """Exactly one of the two."""

    duration: str | None = Field(default=None, description="such as 30m, 4h, 2d")
    until_n_more: int | None = Field(default=None, ge=1, le=10**9)

    @model_validator(mode="after")
    def _one(self) -> Snoozing:
        if (self.duration is None) == (self.until_n_more is None):
            raise ValueError("either duration or until_n_more")
        return self


class Assigning(Action):
    owner: str | None = Field(max_length=100, description="null: nobody")


class Retrying(Action):
    note: str | None = Field(
        default=None,
        max_length=2000,
        description="what was mended; it closes the intervention if that helps, and is the answer"
        " to a question that the turn had stopped at",
    )


class Listed(BaseModel):
    interventions: list[InterventionView] = Field(description="as `interventions list --json`")


@router.get("", response_model=Listed)
def list_interventions(
    serving: Served,
    query: Annotated[str, Query(max_length=500, description="such as `sev:critical age:>1h`")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Any:
    """What waits, the worst and newest first; with `is:any` or `is:resolved` others, too."""

    now = utc_now()
    found = parse(query).select(list(serving.flow.services.queue.entries()), now)
    shown = worst_first(found)[:limit]
    return {"interventions": [InterventionView.of(entry) for entry in shown]}


@router.get("/health", response_model=dict[str, Any])
def queue_health(serving: Served) -> Any:
    """As `interventions health --json`."""
    return serving.flow.services.queue.health()


@router.get("/{intervention_id}", response_model=InterventionView)
def show(serving: Served, intervention_id: Id) -> Any:
    """One, with its traceback, context and evidence."""
    return InterventionView.of(serving.flow.services.queue.find(intervention_id))


@router.get("/{intervention_id}/journal", response_model=list[dict[str, Any]])
def journal(serving: Served, intervention_id: Id) -> Any:
    """Who did what when, oldest first."""
    queue = serving.flow.services.queue
    return queue.journal(queue.find(intervention_id)["id"])


@router.post("/{intervention_id}/resolve", response_model=InterventionView)
def resolve(serving: Served, intervention_id: Id, action: Annotated[Resolving, Body()]) -> Any:
    return _changed(serving, lambda q: q.resolve(intervention_id, action.note, **_who(action)))


@router.post("/{intervention_id}/dismiss", response_model=InterventionView)
def dismiss(serving: Served, intervention_id: Id, action: Annotated[Dismissing, Body()]) -> Any:
    return _changed(serving, lambda q: q.dismiss(intervention_id, action.note, **_who(action)))


@router.post("/{intervention_id}/snooze", response_model=InterventionView)
def snooze(serving: Served, intervention_id: Id, action: Annotated[Snoozing, Body()]) -> Any:
    duration = parse_duration(action.duration) if action.duration is not None else None
    if action.duration is not None and duration is None:
        raise ProblemError(problems.invalid("field_wrong", field_name="duration"))
    return _changed(
        serving,
        lambda q: q.snooze(
            intervention_id, duration=duration, until_n_more=action.until_n_more, **_who(action)
        ),
    )


@router.post("/{intervention_id}/reopen", response_model=InterventionView)
def reopen(serving: Served, intervention_id: Id, action: Annotated[Action, Body()]) -> Any:
    return _changed(serving, lambda q: q.reopen(intervention_id, **_who(action)))


@router.post("/{intervention_id}/assign", response_model=InterventionView)
def assign(serving: Served, intervention_id: Id, action: Annotated[Assigning, Body()]) -> Any:
    return _changed(serving, lambda q: q.assign(intervention_id, action.owner, **_who(action)))


@router.post("/{intervention_id}/undo", response_model=InterventionView)
def undo(serving: Served, intervention_id: Id, action: Annotated[Action, Body()]) -> Any:
    """Take back the last transition."""
    return _changed(serving, lambda q: q.undo(intervention_id, **_who(action))[1])


@router.post("/{intervention_id}/retry", response_model=RetriedView, responses=errors(429))
async def retry_turn(
    request: Request,
    serving: Served,
    facts: OfRequest,
    intervention_id: Id,
    action: Annotated[Retrying, Body()],
) -> Any:
    """Let its turn go on from the phase that failed. 409 if it fails again, or is closed."""
    queue = serving.flow.services.queue
    entry = await asyncio.to_thread(entry_to_retry, queue, intervention_id, action.expected_version)
    work = retried(serving, facts, entry, note=action.note, by=action.by, via=VIA)
    return await serving.running.while_connected(work, request.receive)


def _who(action: Action) -> dict[str, Any]:
    return {"by": action.by, "via": VIA, "expected_version": action.expected_version}


def _changed(serving: Serving, change: Callable[[InterventionQueue], Entry]) -> Any:
    """How it stands after a transition. Raises ProblemError for one that cannot be meant, such as a
    snooze beyond the last year."""
    try:
        entry = change(serving.flow.services.queue)
    except ValueError as exc:
        raise ProblemError(problems.of_status(400)) from exc
    return InterventionView.of(entry)
