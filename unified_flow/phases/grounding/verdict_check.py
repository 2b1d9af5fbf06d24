"""What code finds wrong with a draft counts against the verdict that a model gives on it."""

from __future__ import annotations

from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.quotes import one_line
from unified_flow.models.embedded.verification import faults
from unified_flow.phases.grounding.citations import REMOVED
from unified_flow.phases.grounding.evidence import rests_on_it
from unified_flow.phases.grounding.sources import texts_of
from unified_flow.turns.results import Evidence, Verdict
from unified_flow.turns.sections import Sections

_DOUBT = 0.8  # what is left of the confidence when a citation had to be removed


def weighed(
    verdict: Verdict, query: str, sections: Sections, evidence: Evidence | None = None
) -> Verdict:
    """The verdict, with what code found added to its issues.

    A statement, a number or a name that stands in no source is not approved: APPROVE becomes
    REVISE. So does, once, an answer that rests on nothing, or on a sentence much less likely to
    state it than the first of `evidence`. A verdict that approves nothing stays what it is.
    """
    draft = sections.synthesis
    texts = texts_of(sections)
    if draft is None or draft.abstained or not texts or talk_of(query):
        return verdict
    found = faults(draft, texts, query, sections.coordinator)
    issues = found.issues
    likeliest = one_line(evidence.sentences[0].quote) if evidence and evidence.sentences else ""
    if evidence and likeliest and sections.validation is None:
        elsewhere = evidence.one_fact and not rests_on_it(draft, evidence)
        if elsewhere or found.uncited:
            issues.append(f"does not rest on “{likeliest}”")
    serious = found.are_serious or len(issues) > len(found.issues)
    removed = draft.checklist.get(REMOVED) is False
    if removed:
        issues.append("a citation that did not support its sentence was removed")
    if not issues:
        return verdict
    checks = verdict.checks.model_copy(
        update={
            "claims_supported": verdict.checks.claims_supported
            and not (found.misquoted or found.unsupported or found.uncited),
            "no_hallucinations": verdict.checks.no_hallucinations and not found.invented,
        }
    )
    hints = found.hints if serious else []
    if serious and likeliest:
        # A small model that is only told what is wrong writes the same again.
        hints.append(f"answer in the words of “{likeliest}”")
    return verdict.model_copy(
        update={
            "decision": "REVISE" if serious and verdict.decision == "APPROVE" else verdict.decision,
            "confidence": round(
                verdict.confidence * (_DOUBT if removed or found.uncited else 1.0), 4
            ),
            "checks": checks,
            "issues": list(dict.fromkeys([*verdict.issues, *issues])),
            "hints": list(dict.fromkeys([*verdict.hints, *hints])),
        }
    )
