"""Phase 0: what is asked? Never the raw query, never a default type."""

from unified_flow.errors import QueryAnalyzerError
from unified_flow.running.kit import Kit
from unified_flow.turns.results import QueryAnalysis
from unified_flow.turns.turn import Turn

NAME = "query_analyzer"
ERROR = QueryAnalyzerError
SEVERITY = "critical"

HISTORY_TURNS = 6


async def run(turn: Turn, kit: Kit) -> QueryAnalysis:
    return await kit.ask(QueryAnalysis, history=await kit.history(HISTORY_TURNS))
