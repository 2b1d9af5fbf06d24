"""Phase 0: what is asked? Never the raw query, never a default type."""

from asyncio import to_thread

from unified_flow.errors import QueryAnalyzerError
from unified_flow.kit import Kit
from unified_flow.results import QueryAnalysis
from unified_flow.turn import Turn

NAME = "query_analyzer"
ERROR = QueryAnalyzerError
SEVERITY = "critical"

HISTORY_TURNS = 6


async def run(turn: Turn, kit: Kit) -> QueryAnalysis:
    history = await to_thread(
        kit.sessions.recent, turn.session_id, before=turn.turn_id, limit=HISTORY_TURNS
    )
    return await kit.ask(QueryAnalysis, history=tuple(history))
