"""Phase 5: say it. Never raw claims, never a generic "couldn't find" in place of an answer.

A language model is shown the passages and cites them by number, which code checks. Before a small
one is asked, rules decide whether the passages hold an answer and mark where it stands. It explains
well, and sees that there is no answer; asked for a fact it often misreads the right passage. So
rules quote facts, and in place of a draft that is sent back. A fact that they find unlikely and
that the model reads elsewhere is an abstention (measured in `benchmarks/README.md`).
"""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import SynthesisError
from unified_flow.turns.results import Draft
from unified_flow.turns.turn import Turn

NAME = "synthesis"
ERROR = SynthesisError
SEVERITY = "high"


async def run(turn: Turn, context: PhaseContext) -> Draft:
    # Late, because grounding loads the rules of the embedded model.
    from unified_flow.models.embedded.extraction import (
        asks_for_facts,
        found_nothing,
        is_likely_answered,
        likely_sentences,
        no_answer,
    )
    from unified_flow.phases.grounding.citations import cited, rests_on

    if context.by_rules:
        return await context.ask(Draft)
    again = turn.sections.validation is not None and (turn.sections.validation.decision == "REVISE")
    marked = likely_sentences(turn.question, turn.sections) if context.is_small else ()
    if marked is None or found_nothing(turn.sections) or (context.is_small and again):
        return await context.ask(Draft, by_rules=True)
    quoted = bool(marked) and asks_for_facts(turn.question, turn.sections)
    draft = await context.ask(Draft, evidence=marked, stream=None if quoted else "response")
    draft = cited(draft, turn.question, turn.sections, context.recipe.head.budgets.get("passages"))
    if draft.abstained or not quoted:
        return draft
    if rests_on(draft, marked[0]) or is_likely_answered(turn.question, turn.sections):
        return await context.ask(Draft, by_rules=True)
    return no_answer(turn.question, turn.sections)
