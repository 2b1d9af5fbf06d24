"""Phase 0: what is asked, and what was the conversation about? Never the raw query, never a
default type."""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import QueryAnalyzerError
from unified_flow.turns.results import QueryAnalysis
from unified_flow.turns.turn import Turn

NAME = "query_analyzer"
ERROR = QueryAnalyzerError
SEVERITY = "critical"

HISTORY_TURNS = 6


async def run(turn: Turn, context: PhaseContext) -> QueryAnalysis:
    # Late, because it loads the word lists of all languages.
    from unified_flow.lib.text.conversation import conversation_words

    history = await context.history(HISTORY_TURNS)
    analysis = await context.ask(QueryAnalysis, history=history)
    earlier = conversation_words([(each.question, each.answer) for each in history])
    return analysis.model_copy(update={"conversation": earlier})
