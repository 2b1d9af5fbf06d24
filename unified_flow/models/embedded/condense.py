"""Phase 2, when what was gathered is too long: answers and memories cut to what bears on it."""

from __future__ import annotations

from unified_flow.lib.text import language_of, sentences, terms
from unified_flow.turns.results import GatheredContext
from unified_flow.turns.sections import Sections

_SENTENCES = 2
_CHARACTERS = 400


def condense(query: str, sections: Sections) -> GatheredContext:
    gathered = sections.context_gatherer or GatheredContext()
    analysis = sections.query_analyzer
    asked = analysis.resolved_query if analysis is not None else query
    return gathered.model_copy(
        update={
            "prior_turns": [
                turn.model_copy(
                    update={
                        "question": turn.question[:_CHARACTERS],
                        "answer": shortened(turn.answer, asked),
                    }
                )
                for turn in gathered.prior_turns
            ],
            "memories": [
                memory.model_copy(update={"text": shortened(memory.text, asked)})
                for memory in gathered.memories
            ],
            "reasoning": "shortened to the sentences that bear on the question",
        }
    )


def shortened(text: str, question: str) -> str:
    """The sentences that share most with the question, in their order and as they stand."""
    if len(text) <= _CHARACTERS:
        return text
    language = language_of(text)
    wanted = set(terms(question, language))
    spans = sentences(text)
    shared = [len(wanted & set(terms(text[start:end], language))) for start, end in spans]
    best = sorted(range(len(spans)), key=lambda place: -shared[place])[:_SENTENCES]
    kept = " ".join(text[slice(*spans[place])] for place in sorted(best))
    return kept[:_CHARACTERS] or text[:_CHARACTERS]
