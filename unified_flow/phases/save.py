"""Phase 7: keep it. A failure here does not cost the user the answer."""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import SaveError
from unified_flow.turns.results import Saved
from unified_flow.turns.turn import Turn

NAME = "save"
ERROR = SaveError
SEVERITY = "medium"


async def run(turn: Turn, context: PhaseContext) -> Saved:
    return await context.save(turn)
