"""Phase 5: say it. Never raw claims, never a generic "couldn't find" in place of an answer.

Rules point first at where the passages state an answer; where they see none the voice reads all,
and where nothing was found it is not asked. Citations are attached and checked in code: a model
that answers well may cite badly, or not at all.
"""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import SynthesisError
from unified_flow.turns.results import Draft, Evidence
from unified_flow.turns.turn import Turn

NAME = "synthesis"
ERROR = SynthesisError
SEVERITY = "high"


async def run(turn: Turn, context: PhaseContext) -> Draft:
    # Late, because grounding loads the rules of the embedded model.
    from unified_flow.phases.grounding.citations import cited
    from unified_flow.phases.grounding.evidence import evidence_of, is_hopeless, is_refusal, is_sure

    found = evidence_of(turn.question, turn.sections) if context.leaves_to_rules else None
    nothing = found is not None and is_hopeless(found, small=context.has_small_model)
    again = _is_revision(turn)
    shown = found if found is not None and _is_enough(found, turn, again) else None
    # A revision that is drawn as narrowly as the draft was comes out as the same draft.
    draft = await context.ask(
        Draft, evidence=shown, by_rules=nothing, freely=again, stream="response"
    )
    if is_refusal(draft.response):
        draft = draft.model_copy(update={"abstained": True, "citations": []})
        if again or found is None or not is_sure(found):
            return draft
        return draft.model_copy(update={"abstained": False})
    if draft.abstained and found is not None and is_sure(found):
        # Small models abstain too readily, and call an answer none. What the sources support is
        # one; what they do not is sent back by phase 6, and only a second refusal holds.
        said = cited(draft.model_copy(update={"abstained": False}), turn.question, turn.sections)
        return said if said.citations or not again else draft
    return cited(draft, turn.question, turn.sections)


def _is_enough(found: Evidence, turn: Turn, again: bool) -> bool:
    """Whether the voice is shown the sentences alone: they hold the fact that is asked for, or no
    source supports any of the last draft, and it got lost in the passages."""
    last = turn.sections.synthesis
    lost = again and last is not None and not last.citations
    return bool(found.sentences) and (found.one_fact or lost)


def _is_revision(turn: Turn) -> bool:
    verdict = turn.sections.validation
    return verdict is not None and verdict.decision == "REVISE"
