"""Phase 2: what do we know already? Earlier turns of the session and memories, by search.

"Nothing known" is an honest result; a store that cannot be read is a failure. A model is asked
only to condense what would not fit the recipe's token budget.
"""

from unified_flow.errors import SchemaMismatchError
from unified_flow.models import estimate_tokens
from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import ContextGathererError
from unified_flow.turns.results import GatheredContext, Memory, PriorTurn
from unified_flow.turns.turn import Turn

NAME = "context_gatherer"
ERROR = ContextGathererError
SEVERITY = "high"

PRIOR_TURNS = 3
MEMORIES = 5


async def run(turn: Turn, context: PhaseContext) -> GatheredContext:
    analysis = turn.sections.query_analyzer
    assert analysis is not None
    query = analysis.resolved_query
    prior = await context.search_history(query, PRIOR_TURNS)
    memories = await context.memories(query, MEMORIES)
    gathered = GatheredContext(
        prior_turns=prior,
        memories=memories,
        source_references=_references(prior, memories),
        reasoning=f"{len(prior)} earlier turns and {len(memories)} memories bear on the question",
    )
    if estimate_tokens(gathered.model_dump_json()) <= context.recipe.head.token_budget:
        return gathered
    condensed = await context.ask(GatheredContext, context_gatherer=gathered)
    references = _references(condensed.prior_turns, condensed.memories)
    if added := set(references) - set(gathered.source_references):
        invented = ", ".join(sorted(added))
        raise SchemaMismatchError(f"condensing added what was not there: {invented}")
    return condensed.model_copy(update={"source_references": references})


def _references(turns: list[PriorTurn], memories: list[Memory]) -> list[str]:
    return [f"turn:{prior.turn_id}" for prior in turns] + [f"memory:{m.id}" for m in memories]
