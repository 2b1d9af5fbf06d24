"""Whole turns that follow others."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.answers import ANALYSIS, QUESTION, scripted_flow
from unified_flow import UnifiedFlow
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn

EARLIER = (PriorTurn(turn_id=1, question=QUESTION, answer="A topic is a named bus."),)


def follow_up(flow: UnifiedFlow, question: str) -> Turn:
    async def run() -> Turn:
        async with flow:
            return await flow.process("s", question, history=EARLIER, persist=False)

    return asyncio.run(run())


def test_phase_0_says_what_the_conversation_is_about(home: Path, docs: Path) -> None:
    """Whichever model analyses the question."""
    for flow in (UnifiedFlow.from_config(home, docs=[docs]), scripted_flow(home, docs)):
        turn = follow_up(flow, "Who reads what is sent?")
        assert turn.sections.query_analyzer is not None
        weighed = turn.sections.query_analyzer.conversation
        assert weighed["topic"] > weighed["bus"] > 0
    assert ANALYSIS.conversation == {}
