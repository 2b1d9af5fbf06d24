"""Phase 1: clear enough to go on? CLARIFY ends the turn with a question; no default."""

from unified_flow.errors import ReflectionError
from unified_flow.running.kit import Kit
from unified_flow.turns.results import Reflection
from unified_flow.turns.turn import Turn

NAME = "reflection"
ERROR = ReflectionError
SEVERITY = "high"


async def run(turn: Turn, kit: Kit) -> Reflection:
    return await kit.ask(Reflection)
