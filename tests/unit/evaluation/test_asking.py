"""What came of one question, where the turn said nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.answers import COMPLETE, every_phase_by_model, open_entries, script
from unified_flow.config.tables import GuardrailSettings
from unified_flow.evaluation.answers import EvaluatedAnswer
from unified_flow.evaluation.datasets import DatasetQuestion
from unified_flow.evaluation.flows import USER, ask
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.models.scripted import ScriptedModel
from unified_flow.wiring import wire

TOPIC = DatasetQuestion("1", "What is a topic?", ("bus",))


async def at_once(seconds: float) -> None:
    """Stands in for the waits between tries."""


def asked(home: Path, **over: object) -> EvaluatedAnswer:
    model = ScriptedModel(script(planner=COMPLETE, **over))
    services = wire(
        home, extra_models={"scripted": model}, model="scripted", policy="silent", pause=at_once
    )

    async def run() -> EvaluatedAnswer:
        async with UnifiedFlow(services) as flow:
            return await ask(flow, TOPIC)

    return asyncio.run(run())


@every_phase_by_model
def test_a_turn_that_the_policy_silenced_has_failed(home: Path) -> None:
    answer = asked(home, reflection=ConnectionError("gone"))
    assert (answer.status, answer.response) == ("failed", "")
    assert answer.trouble is not None
    assert (answer.trouble.phase, answer.trouble.error_type) == ("reflection", "ConnectionError")
    assert answer.trouble.intervention_id == open_entries(home)[0]["id"]


def test_a_turn_that_a_rule_blocked_has_failed(home: Path) -> None:
    store = open_store(home, GuardrailSettings())
    store.change(USER, lambda _: UserRules(user_id=USER, flagged_keywords=("topic",)))
    store.close()
    answer = asked(home)
    assert answer.status == "failed"
    assert answer.trouble is not None
    assert "GUARDRAIL_PRE_BLOCKED" in answer.trouble.message
