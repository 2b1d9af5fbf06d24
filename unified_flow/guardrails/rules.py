"""What a user has decided: whether anything answers, where, and what never is answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from unified_flow.guardrails.matching import Rule, checked_rule, read_as


def once(rules: Iterable[str]) -> tuple[str, ...]:
    """As they were written first: SPAM and spam are one rule."""
    kept: dict[str, str] = {}
    for rule in rules:
        kept.setdefault(read_as(rule), rule)
    return tuple(kept.values())


def columns(*, escalates: bool) -> tuple[str, str]:
    """Of keywords and of phrases."""
    kind = "escalate" if escalates else "flagged"
    return f"{kind}_keywords", f"{kind}_phrases"


COLUMNS = (*columns(escalates=False), *columns(escalates=True))


def sorted_out(rules: Iterable[str], *, escalates: bool = False) -> dict[str, list[str]]:
    """By column: what is a single word is a keyword, else a phrase."""
    keyword, phrase = columns(escalates=escalates)
    by: dict[str, list[str]] = {keyword: [], phrase: []}
    for rule in rules:
        by[keyword if len(rule.split()) == 1 else phrase].append(rule)
    return by


class UserRules(BaseModel):
    """A row of `ai_rules`. Without a row everything is on and nothing is flagged.

    `version` counts its changes. The two `escalate_` columns are rules too; what they match goes
    to a person.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    user_id: str = Field(min_length=1, max_length=200)
    ai_control_enabled: bool = True
    ai_enabled_for_chats: bool = True
    ai_enabled_for_comments: bool = True
    flagged_keywords: tuple[str, ...] = ()
    flagged_phrases: tuple[str, ...] = ()
    escalate_keywords: tuple[str, ...] = ()
    escalate_phrases: tuple[str, ...] = ()
    version: int = 0

    @field_validator(*COLUMNS)
    @classmethod
    def _each_once(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        return once(checked_rule(rule) for rule in rules)

    def rules(self) -> Iterator[Rule]:
        for escalates in (False, True):
            keywords, phrases = columns(escalates=escalates)
            yield from (Rule("keyword", text, escalates) for text in getattr(self, keywords))
            yield from (Rule("phrase", text, escalates) for text in getattr(self, phrases))

    def as_row(self) -> dict[str, Any]:
        """As it is shown, and as `rules import` reads it."""
        return self.model_dump(mode="json", exclude={"version"})

    def off_switch(self, channel: str | None) -> str | None:
        """The column that keeps this channel silent. A message of no channel may come from
        either: it is answered as long as one of the two is."""
        if not self.ai_control_enabled:
            return "ai_control_enabled"
        if channel == "comment":
            return None if self.ai_enabled_for_comments else "ai_enabled_for_comments"
        if self.ai_enabled_for_chats or (channel is None and self.ai_enabled_for_comments):
            return None
        return "ai_enabled_for_chats"
