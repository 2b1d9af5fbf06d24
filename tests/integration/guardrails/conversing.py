"""A flow over a scripted model, spoken to; and what is known of it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.answers import COMPLETE, script
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.decisions import RecordedDecision
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.models.scripted import ScriptedModel
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

# What the moderation of a test may take offence at in the reply, and in no question.
REPLY = "named bus"


def flag(store: GuardrailStore, user: str = "default", **columns: Any) -> None:
    store.change(user, lambda rules: UserRules(**(rules.model_dump() | columns)))


class Waits:
    """Stands in for time: no test waits, and every wait is known."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.meanwhile()


def flow_at(home: Path, waits: Waits | None = None, **settings: Any) -> UnifiedFlow:
    """Over a scripted model, unless `settings` name another one."""
    over = settings.pop("script", {})
    settings = {"size": "large", **settings}
    if "base_url" in settings:
        return UnifiedFlow(wire(home, model="test-model", pause=waits, **settings))
    model = ScriptedModel(script(planner=COMPLETE, **over))
    flow = wire(home, extra_models={"scripted": model}, model="scripted", pause=waits, **settings)
    return UnifiedFlow(flow)


def say(flow: UnifiedFlow, *messages: str, session: str = "s1", **options: Any) -> list[Turn]:
    async def run() -> list[Turn]:
        async with flow:
            return [await flow.process(session, message, **options) for message in messages]

    return asyncio.run(run())


def remembered(home: Path, session: str = "s1") -> list[str]:
    """What the next turn of the session is told of it."""
    flow = flow_at(home)
    found = flow.services.sessions.recent(session, before=10**9, limit=99)
    asyncio.run(flow.aclose())
    return [turn.question for turn in found]


def decided(store: GuardrailStore) -> list[RecordedDecision]:
    return store.decisions(limit=99)[::-1]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "unified_flow.guardrails"]


on_both = pytest.mark.parametrize("rules", ["sqlite", "postgresql"], indirect=True)
