"""The failure of a turn is told from its journal alone: another process says it word for word."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import forked
from tests.answers import COMPLETE, QUESTION, Turns, open_entries, scripted_flow
from unified_flow.api.answer import source_of_passage
from unified_flow.api.problems import of_turn_error
from unified_flow.cli.outcome import of_turn, show_outcome
from unified_flow.config.settings import Settings
from unified_flow.engine.outcome import outcome_of, phase_error
from unified_flow.errors import DraftRejectedError, RetrievalError
from unified_flow.phases.errors import PhaseError
from unified_flow.policies import FailFast
from unified_flow.turns.results import Plan, ToolRequest

ASKS = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[ToolRequest(tool="human.ask", args={"question": "Which robot?"}, goal_id="g1")],
)
COUNTS = ToolRequest(tool="calculate", args={"expression": "1"})
CALLS_MANY = [Plan(decision="EXECUTE", route="coordinator", tool_requests=[COUNTS])] * 9
ELSEWHERE = """
import json, sys
from pathlib import Path
from tests.integration.test_failure_told import told, turn_of
home = Path(sys.argv[1])
print(json.dumps(told(turn_of(home), home)))
"""


def limited() -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response = httpx.Response(429, headers={"retry-after": "7"}, request=request)
    return httpx.HTTPStatusError("429 Too Many Requests", request=request, response=response)


def locked() -> RetrievalError:
    error = RetrievalError("the store was locked", hint="wait, and resume the turn")
    error.__cause__ = OSError("held by password=hunter2hunter2")
    return error


def turn_of(home: Path) -> PhaseError:
    return phase_error(Turns(home).require(1), "en")


def told(error: PhaseError, home: Path) -> dict[str, Any]:
    """What a client over HTTP, a script and a reader of the turn learn; the card goes to stderr."""
    policy = FailFast()
    sources = [source_of_passage(each).model_dump(mode="json") for each in error.retrieved]
    outcome, settings = outcome_of(error, policy), Settings(collection="default")
    problem = of_turn_error(error, outcome, error.intervention_id, settings, sources)
    show_outcome(error.turn, error, home)
    return {
        "status": problem.status,
        "headers": problem.headers,
        "body": problem.envelope(error.request_id, "en"),
        "outcome": of_turn(error.turn, error),
        "safe": error.user_safe_message,
        "type": type(error).__name__,
        "page": Turns(home).page(1),
    }


@pytest.mark.parametrize(
    ("policy", "over"),
    [
        ("fail_fast", {"reflection": limited()}),
        ("fail_fast", {"planner": ASKS}),
        ("fail_fast", {"planner": CALLS_MANY}),
        ("fail_fast", {"planner": [COMPLETE], "synthesis": locked()}),
        ("fail_fast", {"validation": DraftRejectedError(["it is wrong"])}),
        ("graceful", {"query_analyzer": httpx.ReadTimeout("too slow")}),
    ],
    ids=["rate limit", "human", "loop limit", "cause and hint", "verdict", "passages beside it"],
)
def test_another_process_tells_the_failure_word_for_word(
    policy: str, over: dict[str, Any], home: Path, docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PhaseError) as raised:
        asyncio.run(scripted_flow(home, docs, policy=policy, **over).process("s", QUESTION))
    capsys.readouterr()
    here = told(raised.value, home)
    card = capsys.readouterr().err
    done = forked.run(
        [sys.executable, "-c", ELSEWHERE, str(home)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(here))
    assert done.stderr == card
    (entry,) = open_entries(home)
    assert f"{entry['severity']}" in card.splitlines()[0]
    assert "hunter2" not in done.stdout + card
    assert bool(here["body"].get("sources")) == (policy == "graceful")
