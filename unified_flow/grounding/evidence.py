"""Whether the passages state an answer, and where: what rules tell better than a small model.

The probability is that of the embedded model (models/embedded/evidence.py), fitted on questions
with and without an answer; architecture/LLM-ROLES has the figures.
"""

from __future__ import annotations

from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.passages import SEARCHES, passages_of
from unified_flow.models.embedded.plan import questions_in
from unified_flow.models.embedded.quotes import quotes_for, shown
from unified_flow.results import Draft, Evidence
from unified_flow.sections import Sections

_SURE = 0.5
_NEAR = 0.25  # of the likeliest sentence's probability


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
    return Evidence(sentences=found.quotes, likely=found.confidence)


def rests_on_it(draft: Draft, evidence: Evidence) -> bool:
    """Whether a draft's citations are among the sentences that could well state the answer."""
    least = _NEAR * evidence.sentences[0].score
    near = [shown(each.quote) for each in evidence.sentences if each.score >= least]
    cited = [shown(citation.quote) for citation in draft.citations]
    return not cited or any(own in each or each in own for own in cited for each in near)


def is_sure(evidence: Evidence) -> bool:
    return evidence.likely >= _SURE
