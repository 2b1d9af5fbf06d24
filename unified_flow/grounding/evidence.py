"""Whether the passages state an answer, and where: what rules tell better than a small model.

The probability is that of the embedded model (models/embedded/evidence.py), fitted on questions
with and without an answer; architecture/LLM-ROLES has the figures.
"""

from __future__ import annotations

from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.passages import SEARCHES, passages_of
from unified_flow.models.embedded.plan import questions_in
from unified_flow.models.embedded.quotes import quotes_for
from unified_flow.results import Citation, Evidence
from unified_flow.sections import Sections

_SURE = 0.5
_SHARE = 0.9  # of the probability of all sentences found


def evidence_of(question: str, sections: Sections) -> Evidence | None:
    """None where rules cannot tell: anything but one question to searched documents alone."""
    known = sections.context_gatherer
    remembered = known is not None and (known.prior_turns or known.memories)
    results = sections.coordinator
    if remembered or not results or any(result.tool not in SEARCHES for result in results):
        return None
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else question
    if talk_of(question) or len(questions_in(asked)) > 1:
        return None
    found = quotes_for(asked, passages_of(results))
    return Evidence(sentences=_likeliest(found.quotes), likely=found.confidence)


def _likeliest(quotes: list[Citation]) -> list[Citation]:
    """As few as have that share between them: each further one is there to be mistaken for it."""
    wanted = _SHARE * sum(quote.score for quote in quotes)
    kept: list[Citation] = []
    for quote in quotes:
        if sum(each.score for each in kept) >= wanted:
            break
        kept.append(quote)
    return kept


def is_sure(evidence: Evidence) -> bool:
    return evidence.likely >= _SURE
