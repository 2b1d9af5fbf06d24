"""What comes next is read off the turn, live or from disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answers import (
    ANALYSIS,
    APPROVE,
    COMPLETE,
    DRAFT,
    PROCEED,
    SEARCH,
    scripted_flow,
    verdict,
)
from unified_flow.config.tables import Limits
from unified_flow.engine.routing import End, Step, next_step
from unified_flow.turns.events import PhaseCompleted, PhaseStarted, TurnStarted
from unified_flow.turns.fold import apply, fold
from unified_flow.turns.journal import read
from unified_flow.turns.results import GatheredContext, Saved
from unified_flow.turns.turn import Turn

BEGUN = apply(
    Turn(),
    TurnStarted(
        turn_id=1,
        session_id="s",
        request_id="r",
        user_id="u",
        channel=None,
        question="q",
        policy="fail_fast",
        config_digest="",
    ),
)
GOOD = {
    "query_analyzer": ANALYSIS,
    "reflection": PROCEED,
    "context_gatherer": GatheredContext(),
    "coordinator": (),
    "synthesis": DRAFT,
    "save": Saved(),
}


def _done(turn: Turn, phase: str, output: object) -> Turn:
    started = PhaseStarted(
        phase=phase, visit=1, attempt=1, input_digest="", model=None, recipe_digest=None
    )
    completed = PhaseCompleted(phase=phase, visit=1, output=output, duration_ms=1.0)
    return apply(apply(turn, started), completed)


@given(
    plans=st.lists(st.sampled_from([SEARCH, COMPLETE]), max_size=40),
    verdicts=st.lists(st.sampled_from(["APPROVE", "REVISE", "RETRY"]), max_size=40),
    limits=st.builds(Limits, planning_loop=st.integers(1, 5), retry=st.integers(0, 3)),
)
@settings(max_examples=100)
def test_every_turn_comes_to_an_end(
    plans: list[object], verdicts: list[str], limits: Limits
) -> None:
    """Whatever the planner and the validation say, the limits bound how often a phase runs."""
    turn, runs = BEGUN, dict.fromkeys([*GOOD, "planner", "validation"], 0)
    while isinstance(step := next_step(turn, limits), Step) and step.limit is None:
        runs[step.phase] += 1
        if step.phase == "planner":
            output: object = plans.pop() if plans else COMPLETE
        elif step.phase == "validation":
            output = verdict(verdicts.pop() if verdicts else "APPROVE")
        else:
            output = GOOD[step.phase]
        turn = _done(turn, step.phase, output)
    assert runs["coordinator"] <= limits.planning_loop * (limits.retry + 1)
    assert runs["validation"] <= 1 + limits.retry + limits.revise
    assert runs["save"] <= 1
    if step == End("answered"):
        assert turn.sections.validation == APPROVE


def test_the_journal_folds_to_the_turn_that_ran(home: Path, docs: Path) -> None:
    ran = asyncio.run(scripted_flow(home, docs).process("s", "What is a topic?"))
    assert fold(read(home / "shared_state/turns/turn_000001")) == ran


def test_a_turn_read_from_any_point_goes_on_as_it_did(home: Path, docs: Path) -> None:
    asyncio.run(scripted_flow(home, docs).process("s", "What is a topic?"))
    events = list(read(home / "shared_state/turns/turn_000001"))
    for place, event in enumerate(events):
        if isinstance(event, PhaseStarted):
            expected = Step(event.phase)
            assert next_step(fold(events[:place]), Limits()) == expected
