"""Whether the sources can hold an answer, which rules tell better than a small model."""

from __future__ import annotations

from unified_flow.config.tool_names import SEARCHES
from unified_flow.models.embedded.extraction import extract
from unified_flow.turns.sections import Sections


def found_nothing(sections: Sections) -> bool:
    """Whether everything that was looked up were searches, and none of them found anything."""
    results = sections.coordinator
    known = sections.context_gatherer
    remembered = known is not None and (known.prior_turns or known.memories)
    searched = bool(results) and all(result.tool in SEARCHES for result in results)
    return searched and not remembered and not any(result.claims for result in results)


def likely_sentences(question: str, sections: Sections) -> tuple[str, ...] | None:
    """The sentences that rules would answer with, best first; None if they would abstain."""
    draft = extract(question, sections)
    return None if draft.abstained else tuple(each.quote for each in draft.citations)
