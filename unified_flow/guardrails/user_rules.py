"""A user's rules: whether anything is answered, where, and what never is; and how they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from unified_flow.guardrails.matcher import Rule, canonical, checked_pattern, checked_rule

MAX_RULES = 100_000
Words = Annotated[tuple[str, ...], Field(max_length=MAX_RULES)]
RULE_COLUMNS = ("flagged_keywords", "flagged_phrases", "escalate_keywords", "escalate_phrases")


class RuleSet(BaseModel):
    """All of a user's rules; what is left out has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ai_control_enabled: bool = True
    ai_enabled_for_chats: bool = True
    ai_enabled_for_comments: bool = True
    flagged_keywords: Words = ()
    flagged_phrases: Words = ()
    escalate_keywords: Words = ()
    escalate_phrases: Words = ()

    @field_validator(*RULE_COLUMNS)
    @classmethod
    def _each_once(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        return _unique(checked_rule(rule) for rule in rules)


class UserRules(RuleSet):
    """A row of `ai_rules`; `version` counts its changes. Messages that the two `escalate_` columns
    match go to a person."""

    user_id: str = Field(min_length=1, max_length=200)
    version: int = 0

    def rules(self) -> Iterator[Rule]:
        for escalates, kind in ((False, "flagged"), (True, "escalate")):
            keywords, phrases = getattr(self, f"{kind}_keywords"), getattr(self, f"{kind}_phrases")
            yield from (Rule("keyword", text, escalates) for text in keywords)
            yield from (Rule("phrase", text, escalates) for text in phrases)

    def as_row(self) -> dict[str, Any]:
        """The rules as they are shown."""
        return {"user_id": self.user_id, **self.model_dump(mode="json", exclude={"version"})}

    def off_switch(self, channel: str | None) -> str | None:
        """The column that keeps this channel silent. A message without a channel may come from
        either: it is answered as long as one of the two is."""
        if not self.ai_control_enabled:
            return "ai_control_enabled"
        if channel == "comment":
            return None if self.ai_enabled_for_comments else "ai_enabled_for_comments"
        if self.ai_enabled_for_chats or (channel is None and self.ai_enabled_for_comments):
            return None
        return "ai_enabled_for_chats"


def parsed_rules(user_id: str, rules: Iterable[str], *, escalates: bool = False) -> UserRules:
    """Rules as a person writes them: a single word is a keyword, else a phrase. Raises InputError
    for what cannot be a rule."""
    kind = "escalate" if escalates else "flagged"
    columns: dict[str, list[str]] = {f"{kind}_keywords": [], f"{kind}_phrases": []}
    for rule in map(checked_pattern, rules):
        columns[f"{kind}_keywords" if len(rule.split()) == 1 else f"{kind}_phrases"].append(rule)
    return UserRules.model_validate({"user_id": user_id, **columns})


def merged(before: UserRules, more: UserRules) -> UserRules:
    """`before` with the rules of `more` added."""
    added = {name: _unique([*getattr(before, name), *getattr(more, name)]) for name in RULE_COLUMNS}
    return before.model_copy(update=added)


def missing(before: UserRules | None, unwanted: Iterable[str]) -> list[str]:
    """The rules in `unwanted` that the user does not have, however they are written."""
    known = {canonical(rule.text) for rule in before.rules()} if before is not None else set()
    return [rule for rule in unwanted if canonical(rule) not in known]


def without(before: UserRules, unwanted: Iterable[str]) -> UserRules:
    """However they are written: SPAM is spam."""
    gone = {canonical(rule) for rule in unwanted}
    left = {
        name: tuple(rule for rule in getattr(before, name) if canonical(rule) not in gone)
        for name in RULE_COLUMNS
    }
    return before.model_copy(update=left)


def _unique(rules: Iterable[str]) -> tuple[str, ...]:
    """Each rule once, as it was written first: SPAM and spam are one rule."""
    first: dict[str, str] = {}
    for rule in rules:
        first.setdefault(canonical(rule), rule)
    return tuple(first.values())
