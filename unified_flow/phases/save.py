"""Phase 7: keep it. A failure here does not cost the user the answer."""

from asyncio import to_thread

from unified_flow.errors import SaveError
from unified_flow.kit import Kit
from unified_flow.results import Saved
from unified_flow.turn import Turn

NAME = "save"
ERROR = SaveError
SEVERITY = "medium"


async def run(turn: Turn, kit: Kit) -> Saved:
    return await to_thread(kit.sessions.save, turn)
