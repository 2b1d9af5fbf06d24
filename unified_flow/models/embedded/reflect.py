"""Phase 1: clear enough to go on? Only what cannot be looked up as it stands is asked back."""

from __future__ import annotations

import re

from unified_flow.lib.text import language_of, terms, words
from unified_flow.lib.text.lexicon import any_language, lexicon_of, phrases_of
from unified_flow.models.embedded.arithmetic import arithmetic
from unified_flow.models.embedded.intents import file_intent, talk_of
from unified_flow.models.embedded.tool_calls import tool_call
from unified_flow.turns.results import Reflection
from unified_flow.turns.sections import Sections

_RUN = 4  # neighbouring keys
_SAME = re.compile(r"(\w)\1{3,}")


def reflect(query: str, sections: Sections) -> Reflection:
    language = language_of(query)
    phrases = phrases_of(language)
    if talk_of(query):
        return Reflection(decision="PROCEED", confidence=0.95, reasoning="nothing to look up")
    analysis = sections.query_analyzer
    if analysis is not None and analysis.reference_resolution.status == "failed":
        references = analysis.reference_resolution.original_references
        # "Why?" refers to nothing that could be named: all of the question is missing.
        bare = references == [query.strip().rstrip("?？!. ")]  # noqa: RUF001
        question = phrases.unclear_reference.format(reference=", ".join(references))
        return _clarify(
            phrases.no_content if bare else question,
            "a reference to an earlier turn could not be resolved",
        )
    asked = analysis.resolved_query if analysis is not None else query
    if file_intent(asked) or arithmetic(asked) or tool_call(asked, sections.tools):
        return Reflection(decision="PROCEED", confidence=0.95, reasoning="it names what to do")
    content = [word for word in _content(asked) if word]
    if not content:
        return _clarify(phrases.no_content, "no word of the question says what it is about")
    if all(_is_gibberish(word) for word in content):
        return _clarify(phrases.gibberish, "none of its words is one")
    return Reflection(
        decision="PROCEED", confidence=0.9, reasoning=f"it asks about {', '.join(content[:6])}"
    )


def _content(text: str) -> list[str]:
    """The words that say something, also those that only a question about words would hold."""
    language = language_of(text)
    lexicon = lexicon_of(language)
    return [
        word
        for word in words(text)
        if any(character.isalnum() for character in word)
        and word.casefold() not in lexicon.verbs
        and terms(word, language)
    ]


def _is_gibberish(word: str) -> bool:
    """Keys struck in a row or over and over. A strange word is no gibberish: it is looked up."""
    plain = word.casefold()
    if _SAME.search(plain) and len(set(plain)) <= 2:
        return True
    runs = (plain[i : i + _RUN] for i in range(len(plain) - _RUN + 1))
    rows = any_language().keyboard
    struck = sum(any(run in row or run in row[::-1] for row in rows) for run in runs)
    return struck > 0 and struck * 2 >= len(plain) - _RUN + 1


def _clarify(question: str, reasoning: str) -> Reflection:
    return Reflection(
        decision="CLARIFY", confidence=0.9, reasoning=reasoning, clarification_question=question
    )
