"""Phase 3: which way? The sole routing authority; no keyword or default tool stands in for it."""

from unified_flow.errors import PlannerError
from unified_flow.running.kit import Kit
from unified_flow.turns.results import Plan
from unified_flow.turns.turn import Turn

NAME = "planner"
ERROR = PlannerError
SEVERITY = "critical"


async def run(turn: Turn, kit: Kit) -> Plan:
    return await kit.ask(Plan, tools=await kit.tools())
