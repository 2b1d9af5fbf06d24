"""Phase 5: say it. Never raw claims, never a generic "couldn't find" in place of an answer."""

from unified_flow.errors import SynthesisError
from unified_flow.kit import Kit
from unified_flow.results import Draft
from unified_flow.turn import Turn

NAME = "synthesis"
ERROR = SynthesisError
SEVERITY = "high"


async def run(turn: Turn, kit: Kit) -> Draft:
    return await kit.ask(Draft, stream="response")
