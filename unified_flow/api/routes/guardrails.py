"""The users' rules and the guardrails' decisions. Everything here needs the triage token."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api.dependencies import AppState, StateDep, require_triage_token
from unified_flow.api.response_schemas import errors
from unified_flow.guardrails.decisions import Choice, stats_of
from unified_flow.guardrails.user_rules import UserRules, merged, missing, parsed_rules, without
from unified_flow.guardrails.verdict import of_rules
from unified_flow.turns.input_checks import MAX_ID_CHARS, checked_user

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore

router = APIRouter(
    tags=["guardrails"],
    dependencies=[Depends(require_triage_token)],
    responses=errors(404, 408, 413, 415, 422),
)
MAX_RULES = 100_000


def known_user(user_id: Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARS)]) -> str:
    """The user id as the flow knows it."""
    return checked_user(user_id)


UserId = Annotated[str, Depends(known_user)]
Words = Annotated[list[str], Field(max_length=MAX_RULES)]


class RuleSet(BaseModel):
    """All of a user's rules; what is left out has its default."""

    model_config = ConfigDict(extra="forbid")

    ai_control_enabled: bool = True
    ai_enabled_for_chats: bool = True
    ai_enabled_for_comments: bool = True
    flagged_keywords: Words = []
    flagged_phrases: Words = []
    escalate_keywords: Words = []
    escalate_phrases: Words = []


class RulesOfUser(RuleSet):
    """As `GET /rules` gives them."""

    user_id: Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]


class ImportedRules(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rules: Annotated[list[RulesOfUser], Field(max_length=MAX_RULES)]


class UnwantedRules(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rules: Annotated[Words, Field(min_length=1, description="words and phrases")]


class AddedRules(UnwantedRules):
    escalate: bool = Field(default=False, description="a person answers what they match")


class TriedMessage(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=10_000)
    channel: Literal["chat", "comment"] | None = None


@router.get("/rules")
def all_rules(state: StateDep) -> dict[str, Any]:
    return {"rules": [each.as_row() for each in _store(state).all_rules()]}


@router.get("/rules/{user_id}")
def rules_of(state: StateDep, user_id: UserId) -> dict[str, Any]:
    return _existing(state, user_id).as_row()


@router.put("/rules/{user_id}")
def replace_rules(state: StateDep, user_id: UserId, body: RuleSet) -> dict[str, Any]:
    """Replace all rules of the user, from the next message on."""
    wanted = UserRules(user_id=user_id, **body.model_dump())
    stored = _store(state).change(
        user_id, lambda before: wanted.model_copy(update={"version": before.version})
    )
    return stored.as_row()


@router.post("/rules/import")
def import_rules(state: StateDep, body: ImportedRules) -> dict[str, Any]:
    """Add the rules of a `GET /rules` to the existing ones; a switch that is left out stays."""
    rows = [each.model_dump(exclude_unset=True) for each in body.rules]
    wanted = [UserRules(**row | {"user_id": checked_user(row["user_id"])}) for row in rows]
    store = _store(state)
    stored = [store.change(more.user_id, partial(merged, more=more)) for more in wanted]
    return {"rules": [each.as_row() for each in stored]}


@router.post("/rules/{user_id}/add")
def add_rules(state: StateDep, user_id: UserId, body: AddedRules) -> dict[str, Any]:
    """A word is a keyword, several words are a phrase. They hold from the next message on."""
    more = parsed_rules(user_id, body.rules, escalates=body.escalate)
    return _store(state).change(user_id, partial(merged, more=more)).as_row()


@router.post("/rules/{user_id}/remove")
def remove_rules(state: StateDep, user_id: UserId, body: UnwantedRules) -> dict[str, Any]:
    """Remove rules in any spelling: SPAM is spam. All, or none if the user lacks one (404)."""
    if missing(_existing(state, user_id), body.rules):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return _store(state).change(user_id, partial(without, unwanted=body.rules)).as_row()


@router.delete("/rules/{user_id}")
def forget_rules(state: StateDep, user_id: UserId) -> dict[str, Any]:
    """Delete the user's rules; the decisions stay."""
    if not _store(state).delete(user_id):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return {"user_id": user_id}


@router.post("/rules/{user_id}/test")
def try_rules(state: StateDep, user_id: UserId, body: TriedMessage) -> dict[str, Any]:
    """Apply the rules to a message, without moderation and without a record."""
    active = _store(state).active_rules(user_id)
    if active is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    result = of_rules(active.rules, active.matcher, body.channel, body.text)
    return result.as_state() | {"matched_rule": result.matched_rule}


@router.get("/decisions")
def decisions(
    state: StateDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    user_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARS)] = None,
    decision: Choice | None = None,
) -> dict[str, Any]:
    """The latest, newest first; redacted."""
    user_id = checked_user(user_id) if user_id is not None else None
    found = _store(state).decisions(limit=limit, user_id=user_id, decision=decision)
    return {"decisions": [each.as_shown() for each in found]}


@router.get("/guardrails/stats")
def stats(state: StateDep, days: Annotated[int, Query(ge=1, le=366)] = 7) -> dict[str, Any]:
    """Blocks a day by rule, how often a model was called again, silent failures."""
    return asdict(stats_of(_store(state).by_day(days), days))


def _store(state: AppState) -> GuardrailStore:
    return state.services.guardrails.store()


def _existing(state: AppState, user_id: str) -> UserRules:
    rules = _store(state).rules(user_id)
    if rules is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return rules
