"""A user's rules after a change: pure, for the command line and the API alike."""

from __future__ import annotations

from collections.abc import Iterable

from unified_flow.guardrails.matching import read_as
from unified_flow.guardrails.rules import COLUMNS, UserRules, once, sorted_out


def written(user_id: str, rules: Iterable[str], *, escalates: bool = False) -> UserRules:
    """Rules as somebody writes them: a single word is a keyword, else a phrase. Raises InputError
    for what cannot be one."""
    return UserRules.model_validate({"user_id": user_id, **sorted_out(rules, escalates=escalates)})


def merged(before: UserRules, more: UserRules) -> UserRules:
    """`before` with the rules of `more` added; the switches are those of `more`."""
    added = {name: once([*getattr(before, name), *getattr(more, name)]) for name in COLUMNS}
    switches = more.model_dump(include={name for name in more.model_fields_set if "ai_" in name})
    return before.model_copy(update=added | switches)


def missing(before: UserRules | None, unwanted: Iterable[str]) -> list[str]:
    """Those of `unwanted` that the user does not have, however they are written."""
    known = {read_as(rule.text) for rule in before.rules()} if before is not None else set()
    return [rule for rule in unwanted if read_as(rule) not in known]


def without(before: UserRules, unwanted: Iterable[str]) -> UserRules:
    """However they are written: SPAM is spam."""
    gone = {read_as(rule) for rule in unwanted}
    return before.model_copy(
        update={
            name: tuple(rule for rule in getattr(before, name) if read_as(rule) not in gone)
            for name in COLUMNS
        }
    )
