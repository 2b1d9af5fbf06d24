"""The users' rules and the guardrails' decisions. Everything here needs the triage token."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Query
from pydantic import BaseModel

from unified_flow.api.dependencies import AppState, StateDep
from unified_flow.api.response_schemas import errors
from unified_flow.guardrails.decisions import Choice, GuardrailStats, RecordedDecision, stats_of
from unified_flow.guardrails.user_rules import RuleSet, UserRules
from unified_flow.turns.input_checks import MAX_ID_CHARS, checked_user

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore

router = APIRouter(
    tags=["guardrails"],
    responses=errors(404, 408, 413, 415, 422),
)


class RulesOfUser(RuleSet):
    user_id: str


class AllRules(BaseModel):
    rules: list[RulesOfUser]


class Forgotten(BaseModel):
    user_id: str


class Decisions(BaseModel):
    decisions: list[RecordedDecision]


def known_user(user_id: Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARS)]) -> str:
    """The user id as the flow knows it."""
    return checked_user(user_id)


UserId = Annotated[str, Depends(known_user)]


@router.get("/rules")
def all_rules(state: StateDep) -> AllRules:
    return AllRules(rules=[_shown(each) for each in _store(state).all_rules()])


@router.get("/rules/{user_id}")
def rules_of(state: StateDep, user_id: UserId) -> RulesOfUser:
    rules = _store(state).rules(user_id)
    if rules is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return _shown(rules)


@router.put("/rules/{user_id}")
def replace_rules(state: StateDep, user_id: UserId, body: RuleSet) -> RulesOfUser:
    """Replace all rules of the user, from the next message on."""
    wanted = UserRules(user_id=user_id, **body.model_dump())
    stored = _store(state).change(
        user_id, lambda before: wanted.model_copy(update={"version": before.version})
    )
    return _shown(stored)


@router.delete("/rules/{user_id}")
def forget_rules(state: StateDep, user_id: UserId) -> Forgotten:
    """Delete the user's rules; the decisions stay."""
    if not _store(state).delete(user_id):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Forgotten(user_id=user_id)


@router.get("/decisions")
def decisions(
    state: StateDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    user_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARS)] = None,
    decision: Choice | None = None,
) -> Decisions:
    """The latest, newest first; redacted."""
    user_id = checked_user(user_id) if user_id is not None else None
    found = _store(state).decisions(limit=limit, user_id=user_id, decision=decision)
    return Decisions.model_validate({"decisions": [each.as_shown() for each in found]})


@router.get("/guardrails/stats")
def stats(state: StateDep, days: Annotated[int, Query(ge=1, le=366)] = 7) -> GuardrailStats:
    """Blocks a day by rule, how often a model was called again, silent failures."""
    return stats_of(_store(state).by_day(days), days)


def _shown(rules: UserRules) -> RulesOfUser:
    return RulesOfUser.model_validate(rules.as_row())


def _store(state: AppState) -> GuardrailStore:
    return state.services.guardrails.store()
