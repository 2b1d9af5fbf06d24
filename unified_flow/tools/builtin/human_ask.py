"""`human.ask`: the turn waits for a person's answer, which is this tool's result."""

from __future__ import annotations

from pydantic import Field

from unified_flow.config import tool_names
from unified_flow.errors import HumanNeededError
from unified_flow.tools import Arguments, Tool, ToolOutput, current_caller
from unified_flow.turns.results import Claim


class AskArguments(Arguments):
    question: str = Field(min_length=1, max_length=2000, description="what the person must answer")


async def _run(args: AskArguments) -> ToolOutput:
    """Raises HumanNeededError until the turn is resumed with an answer to this question."""
    answer = current_caller().answer
    if answer is None:
        raise HumanNeededError(
            args.question, hint='resolve the intervention with --retry and --note "the answer"'
        )
    whole = Claim(claim=answer, confidence=1.0, source=tool_names.HUMAN_ASK)
    return ToolOutput({"question": args.question, "answer": answer}, [whole])


HUMAN_ASK = Tool(
    name=tool_names.HUMAN_ASK,
    description="Ask a person. The answer comes later.",
    arguments=AskArguments,
    access=frozenset(),
    run=_run,
)
