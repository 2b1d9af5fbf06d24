"""What code can establish of a draft counts for more than the verdict that a model gives on it."""

from __future__ import annotations

from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.verification import findings
from unified_flow.phases.grounding.citations import REMOVED
from unified_flow.turns.results import Check, Verdict
from unified_flow.turns.sections import Sections

_DOUBT = 0.8  # what is left of the confidence when a citation had to be removed


def weighed(verdict: Verdict, query: str, sections: Sections) -> Verdict:
    """The verdict, with what code knows in its checks and issues.

    APPROVE becomes REVISE for a quotation, a name or a number that stands in no source, for an
    answer without a source though documents were searched, and for an abstention that cites. A
    verdict that approves nothing stays what it is. What the model takes for supported and code
    cannot tell is not checked.
    """
    draft = sections.synthesis
    if draft is None or talk_of(query):
        return verdict
    if draft.abstained:
        return _sent_back(verdict, ["an abstention with citations"]) if draft.citations else verdict
    found = findings(draft, query, sections)
    if found.issues:
        verdict = _sent_back(verdict, found.issues, found.hints)
    checks = verdict.checks
    supported = _together(checks.claims_supported, found.check)
    honest = _together(checks.no_hallucinations, found.check)
    known = {"claims_supported": supported, "no_hallucinations": honest}
    changes: dict[str, object] = {"checks": checks.model_copy(update=known)}
    if draft.checklist.get(REMOVED) is False:
        issue = "a citation that did not support its sentence was removed"
        changes["issues"] = [*verdict.issues, issue]
        changes["confidence"] = round(verdict.confidence * _DOUBT, 4)
    return verdict.model_copy(update=changes)


def _sent_back(verdict: Verdict, issues: list[str], hints: list[str] | None = None) -> Verdict:
    return verdict.model_copy(
        update={
            "decision": "REVISE" if verdict.decision == "APPROVE" else verdict.decision,
            "issues": list(dict.fromkeys([*verdict.issues, *issues])),
            "hints": list(dict.fromkeys([*verdict.hints, *(hints or [])])),
        }
    )


def _together(said: Check, known: Check) -> Check:
    """What code has established, unless the model sees a fault."""
    return False if said is False else known
