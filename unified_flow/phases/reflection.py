"""Phase 1: clear enough to go on? CLARIFY ends the turn with a question; no default."""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import ReflectionError
from unified_flow.turns.results import Reflection
from unified_flow.turns.turn import Turn

NAME = "reflection"
ERROR = ReflectionError
SEVERITY = "high"


async def run(turn: Turn, context: PhaseContext) -> Reflection:
    return await context.ask(Reflection)
