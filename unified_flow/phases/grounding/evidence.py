"""Where the passages state an answer: what rules tell better than a small model.

The probability is that of the embedded model (models/embedded/sentence_ranking.py), fitted on
questions with and without an answer; architecture/LLM-ROLES has the figures.
"""

from __future__ import annotations

from unified_flow.lib.text import language_of
from unified_flow.lib.text.lexicon import lexicons
from unified_flow.models.embedded.excerpts import SEARCHES, found_passages, language_of_passages
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.parsed_question import parse_question
from unified_flow.models.embedded.planning import questions_in
from unified_flow.models.embedded.quotes import one_line, quotes_for
from unified_flow.turns.results import Draft, Evidence
from unified_flow.turns.sections import Sections

_SURE = 0.5
_NEEDS_PASSAGES = frozenset({"reason", "manner"})


def evidence_of(question: str, sections: Sections) -> Evidence | None:
    """None where rules cannot tell: anything but one question to searched documents alone, in
    their language. No sentence if they see none that could state the answer.
    """
    known = sections.context_gatherer
    remembered = known is not None and (known.prior_turns or known.memories)
    results = sections.coordinator
    if remembered or not results or any(result.tool not in SEARCHES for result in results):
        return None
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else question
    if talk_of(question) or len(questions_in(asked)) > 1:
        return None
    passages = found_passages(results)
    if not passages:
        return Evidence(likely=0.0)
    if language_of(asked) != language_of_passages(passages):
        return None
    found = quotes_for(asked, passages)
    one_fact = _asks_for_one_fact(asked)
    return Evidence(sentences=list(found.quotes), likely=found.confidence, one_fact=one_fact)


def _asks_for_one_fact(question: str) -> bool:
    """Why and how want more than a sentence, and so does whatever is no question."""
    read = parse_question(question)
    asks = any(pattern.match(question.lstrip()) for _, pattern in read.lexicon.kinds)
    return (asks or question.rstrip().endswith("?")) and read.kind not in _NEEDS_PASSAGES


def is_hopeless(evidence: Evidence, *, small: bool) -> bool:
    """Whether no model need be asked: nothing was found; or rules see no sentence that states the
    fact, and the model is one that would rather make one up than see it in other words."""
    if evidence.sentences:
        return False
    return evidence.likely == 0.0 or (small and evidence.one_fact)


def rests_on_it(draft: Draft, evidence: Evidence) -> bool:
    """Whether a draft's citations are among the sentences that could well state the answer."""
    near = [one_line(each.quote) for each in evidence.sentences]
    cited = [one_line(citation.quote) for citation in draft.citations]
    return not cited or any(own in each or each in own for own in cited for each in near)


def is_refusal(response: str) -> bool:
    """Whether it says in plain words that the sources do not say."""
    return any(each.refusal.search(response) for each in lexicons())


def is_sure(evidence: Evidence) -> bool:
    return evidence.likely >= _SURE
