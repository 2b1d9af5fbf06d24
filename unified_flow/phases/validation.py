"""Phase 6: is it true and does it answer? No default verdict; FAIL is a failure of the turn."""

from unified_flow.errors import DraftRejectedError
from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import ValidationError
from unified_flow.turns.results import Verdict
from unified_flow.turns.turn import Turn

NAME = "validation"
ERROR = ValidationError
SEVERITY = "medium"


async def run(turn: Turn, context: PhaseContext) -> Verdict:
    # Late, because grounding loads the rules of the embedded model.
    from unified_flow.phases.grounding.citations import weighed

    verdict = await context.ask(Verdict)
    if not context.by_rules:  # they weigh their own
        verdict = weighed(verdict, turn.question, turn.sections)
    if verdict.decision == "FAIL":
        raise DraftRejectedError(verdict.issues)
    return verdict
