"""Phase 5: say it. Never raw claims, never a generic "couldn't find" in place of an answer.

Citations are attached and checked in code: a model that answers well may cite badly, or not at all.
"""

from unified_flow.errors import SynthesisError
from unified_flow.grounding.citing import cited
from unified_flow.kit import Kit
from unified_flow.results import Draft
from unified_flow.turn import Turn

NAME = "synthesis"
ERROR = SynthesisError
SEVERITY = "high"


async def run(turn: Turn, kit: Kit) -> Draft:
    draft = await kit.ask(Draft, stream="response")
    return cited(draft, turn.question, turn.sections)
