"""Phase 0: what is asked? Never the raw query, never a default type."""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import QueryAnalyzerError
from unified_flow.turns.results import QueryAnalysis
from unified_flow.turns.turn import Turn

NAME = "query_analyzer"
ERROR = QueryAnalyzerError
SEVERITY = "critical"

HISTORY_TURNS = 6


async def run(turn: Turn, context: PhaseContext) -> QueryAnalysis:
    return await context.ask(QueryAnalysis, history=await context.history(HISTORY_TURNS))
