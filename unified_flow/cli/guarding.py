"""What the commands about guardrails share: the store, and how a user's rules are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.cli.screen import note, say

if TYPE_CHECKING:
    from unified_flow.guardrails.rules import UserRules
    from unified_flow.guardrails.store import GuardrailStore


def store_at(home: Path | None) -> GuardrailStore:
    """Raises ConfigError, also where the extra is not installed."""
    from interventions.home import find_home
    from unified_flow.config.settings import load
    from unified_flow.guardrails.opening import open_store

    place = find_home(home)
    return open_store(place, load(place).guardrails)


def change_rules(
    user: str, change: Callable[[UserRules], UserRules], home: Path | None
) -> UserRules:
    """The user's rules after it. Raises InputError for what is no user's name."""
    return store_at(home).change(named(user), change)


def named(user: str) -> str:
    """The user as the flow knows them. Raises InputError."""
    from unified_flow.turns.inputs import checked_user

    return checked_user(user)


def told(after: UserRules, as_json: bool) -> None:
    if as_json:
        say(json.dumps(after.as_row(), ensure_ascii=False))
    else:
        note(summary(after))


def summary(rules: UserRules) -> str:
    return f"{rules.user_id} has {len(list(rules.rules()))} rules and {switches(rules)}"


def switches(rules: UserRules) -> str:
    if not rules.ai_control_enabled:
        return "answers nowhere"
    off = [
        name
        for name, on in (
            ("chats", rules.ai_enabled_for_chats),
            ("comments", rules.ai_enabled_for_comments),
        )
        if not on
    ]
    return f"answers, but not in {' and '.join(off)}" if off else "answers everywhere"
