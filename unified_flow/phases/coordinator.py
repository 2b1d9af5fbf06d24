"""Phase 4: do it. The plan's tool requests in order; the first failure ends the phase."""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import CoordinatorError
from unified_flow.turns.results import ToolResult
from unified_flow.turns.turn import Turn

NAME = "coordinator"
ERROR = CoordinatorError
SEVERITY = "high"


async def run(turn: Turn, context: PhaseContext) -> tuple[ToolResult, ...]:
    plan = turn.sections.planner
    assert plan is not None
    results = [await context.call(place, asked) for place, asked in enumerate(plan.tool_requests)]
    return tuple(results)
