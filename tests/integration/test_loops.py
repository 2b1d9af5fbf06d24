"""The two loops, REVISE and RETRY, and the four limits, each reached for real."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.answers import (
    ANALYSIS,
    APPROVE,
    COMPLETE,
    DRAFT,
    PROCEED,
    QUESTION,
    SEARCH,
    every_phase_by_model,
    journal_lines,
    open_entries,
    script,
    scripted_flow,
    started_phases,
    verdict,
)
from unified_flow.flow import UnifiedFlow
from unified_flow.models.scripted import ScriptedModel
from unified_flow.phases.errors import LoopLimitError
from unified_flow.policies import FailFast, Failure, Retry
from unified_flow.turns.results import Plan, Reflection
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

pytestmark = every_phase_by_model


def _run(home: Path, docs: Path, **over: Any) -> Turn:
    return asyncio.run(scripted_flow(home, docs, **over).process("s", QUESTION))


def test_planner_and_coordinator_alternate_until_complete(home: Path, docs: Path) -> None:
    turn = _run(home, docs, planner=[SEARCH, SEARCH, SEARCH, COMPLETE])
    assert started_phases(home)[3:10] == ["planner", "coordinator"] * 3 + ["planner"]
    assert len(turn.sections.coordinator) == 3
    assert turn.status == "answered"


def test_revise_goes_to_synthesis(home: Path, docs: Path) -> None:
    better = DRAFT.model_copy(update={"response": "A named bus."})
    turn = _run(home, docs, validation=[verdict("REVISE"), APPROVE], synthesis=[DRAFT, better])
    assert turn.response == "A named bus."
    assert started_phases(home)[-5:] == [
        "synthesis",
        "validation",
        "synthesis",
        "validation",
        "save",
    ]


def test_retry_goes_to_the_planner(home: Path, docs: Path) -> None:
    plans = [SEARCH, COMPLETE, SEARCH, COMPLETE]
    turn = _run(home, docs, validation=[verdict("RETRY"), APPROVE], planner=plans)
    assert started_phases(home).count("coordinator") == 2
    assert turn.status == "answered"


LIMITS: dict[str, tuple[dict[str, Any], str, int, dict[str, int]]] = {
    "planning_loop": ({"planner": SEARCH}, "planner", 5, {}),
    "retry": ({"validation": verdict("RETRY"), "planner": COMPLETE}, "planner", 1, {}),
    "revise": ({"validation": verdict("REVISE")}, "synthesis", 2, {}),
    "model_calls": (
        {"validation": verdict("RETRY"), "planner": [SEARCH] * 4 + [COMPLETE]},
        "synthesis",
        7,
        {"model_calls": 7},
    ),
}


@pytest.mark.parametrize("loop", LIMITS)
def test_a_limit_that_is_reached_halts_the_turn(loop: str, home: Path, docs: Path) -> None:
    over, phase, limit, limits = LIMITS[loop]
    flow = UnifiedFlow(
        wire(
            home,
            docs=[docs],
            extra_models={"scripted": ScriptedModel(script(**over))},
            model="scripted",
            limits=limits,
        )
    )
    with pytest.raises(LoopLimitError) as raised:
        asyncio.run(flow.process("s", QUESTION))
    assert raised.value.phase == phase
    assert raised.value.partial["query_analyzer"]["resolved_query"] == QUESTION
    (entry,) = open_entries(home)
    assert entry["type"] == "limit_exceeded"
    assert entry["severity"] == "high"
    assert entry["phase"] == phase
    assert entry["error_type"] == "LoopLimitError"
    context = {key: entry["context"][key] for key in ("loop", "iterations", "limit")}
    assert context == {"loop": loop, "iterations": limit, "limit": limit}
    assert raised.value.category == entry["error_category"] == "limit_error"
    reason = {"planning_loop": "doc.search", "retry": "an issue", "revise": "an issue"}.get(loop)
    if reason is not None:  # of each round
        assert str(raised.value).count(reason) >= limit
        assert f"limits.{loop}" in (raised.value.hint or "")


def test_no_turn_makes_more_than_25_model_calls(home: Path, docs: Path) -> None:
    """By the other limits alone a turn could make more."""
    model = ScriptedModel(script(validation=verdict("REVISE"), planner=[SEARCH] * 4 + [COMPLETE]))
    flow = UnifiedFlow(
        wire(
            home,
            docs=[docs],
            extra_models={"scripted": model},
            model="scripted",
            limits={"revise": 100},
        )
    )
    with pytest.raises(LoopLimitError):
        asyncio.run(flow.process("s", QUESTION))
    assert len(model.calls) == 25
    assert open_entries(home)[0]["context"]["loop"] == "model_calls"


def test_clarify_ends_the_turn_with_the_question(home: Path, docs: Path) -> None:
    asks = Reflection(decision="CLARIFY", confidence=0.9, clarification_question="Which topic?")
    turn = _run(home, docs, reflection=asks)
    assert (turn.status, turn.response) == ("clarify", "Which topic?")
    assert started_phases(home) == ["query_analyzer", "reflection"]
    assert open_entries(home) == []


def test_the_planner_may_ask_too(home: Path, docs: Path) -> None:
    plan = Plan(decision="COMPLETE", route="clarify", clarification_question="Which robot?")
    turn = _run(home, docs, planner=plan)
    assert (turn.status, turn.clarification_question) == ("clarify", "Which robot?")


class TryOnceMore(FailFast):
    """A policy that lets the failure of a first attempt be tried again at once."""

    def again(self, failure: Failure) -> Retry | None:
        return Retry(after_s=0.0) if failure.attempt == 1 else None


def test_a_call_that_fails_is_journalled_and_counts(home: Path, docs: Path) -> None:
    down = RuntimeError("down")
    over = script(query_analyzer=[down, ANALYSIS], reflection=[down, PROCEED])
    services = wire(
        home,
        docs=[docs],
        extra_models={"scripted": ScriptedModel(over)},
        model="scripted",
        limits={"model_calls": 4},
    )
    flow = UnifiedFlow(replace(services, policy=TryOnceMore()))
    with pytest.raises(LoopLimitError) as raised:
        asyncio.run(flow.process("s", QUESTION))
    assert raised.value.phase == "planner"
    assert open_entries(home)[0]["context"]["iterations"] == 4
    asked = [line for line in journal_lines(home) if line["event"].startswith("model_")]
    assert [(line["event"], line["phase"]) for line in asked] == [
        ("model_failed", "query_analyzer"),
        ("model_called", "query_analyzer"),
        ("model_failed", "reflection"),
        ("model_called", "reflection"),
    ]
    assert asked[0]["error_type"] == "RuntimeError"
    assert asked[0]["request_digest"] == asked[1]["request_digest"]
