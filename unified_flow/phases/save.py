"""Phase 7: keep it. A failure here does not cost the user the answer."""

from asyncio import to_thread

from unified_flow.errors import SaveError
from unified_flow.running.kit import Kit
from unified_flow.turns.results import Saved
from unified_flow.turns.turn import Turn

NAME = "save"
ERROR = SaveError
SEVERITY = "medium"


async def run(turn: Turn, kit: Kit) -> Saved:
    return await to_thread(kit.sessions.save, turn)
