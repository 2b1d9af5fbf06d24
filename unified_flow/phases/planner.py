"""Phase 3: which way? The sole routing authority; no keyword or default tool stands in for it."""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import PlannerError
from unified_flow.turns.results import Plan
from unified_flow.turns.turn import Turn

NAME = "planner"
ERROR = PlannerError
SEVERITY = "critical"


async def run(turn: Turn, context: PhaseContext) -> Plan:
    return await context.ask(Plan, tools=await context.tools())
