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
    from unified_flow.phases.grounding.evidence import evidence_of
    from unified_flow.phases.grounding.verdict_check import weighed

    found = evidence_of(turn.question, turn.sections) if context.leaves_to_rules else None
    verdict = weighed(await context.ask(Verdict), turn.question, turn.sections, found)
    if verdict.decision == "FAIL":
        issues = "; ".join(verdict.issues) or "no issue named"
        raise DraftRejectedError(
            f"the verdict on the draft is FAIL: {issues}",
            hint="compare the draft with the evidence; mend the documents, the recipe or the model",
        )
    return verdict
