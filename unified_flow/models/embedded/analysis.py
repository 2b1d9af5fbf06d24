"""Phases 0 and 1: what is asked, and whether that is clear enough to go on."""

from __future__ import annotations

import re
from typing import Literal

from unified_flow.lib.text import language_of, terms, words
from unified_flow.lib.text.lexicon import lexicon_of, phrases_of
from unified_flow.models.embedded.intents import arithmetic, file_request, talk_of, tool_call
from unified_flow.models.embedded.references import Resolution, resolve
from unified_flow.turns.results import PriorTurn, QueryAnalysis, ReferenceResolution, Reflection
from unified_flow.turns.sections import Sections

# What is written as something's own name: code, a path, quoted words, an identifier.
_SPECIFIC = re.compile(
    r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|\b(\w+(?:::\w+)+|\w+_\w+|[\w-]+(?:/[\w.-]+)+|[\w-]+\.(?:md|rst|txt|py|html?|json|ya?ml|toml))\b"
)
_LABEL = re.compile(r"\A\s*Q(?:uestion)?\s*[:.]\s+(?=\S)", re.IGNORECASE)  # "Q: How do I ...?"
_NAME = re.compile(r"(?<!^)(?<![?.!]\s)\b[A-ZÅÄÖÉÈ][\w-]*\b")


def analyze(query: str, sections: Sections) -> QueryAnalysis:
    query = bare(query)
    small_talk = Resolution("not_needed", query) if talk_of(query) else None
    resolution = small_talk or resolve(query, sections.history)
    specific = _SPECIFIC.search(resolution.query)
    reference = next((group for group in specific.groups() if group), None) if specific else None
    return QueryAnalysis(
        resolved_query=resolution.query,
        reference_resolution=ReferenceResolution(
            status=resolution.status,
            original_references=list(resolution.references),
            resolved_to=resolution.stands_for,
        ),
        query_type=_type(resolution, reference, sections.history),
        content_reference=reference,
        reasoning=_reasoning(resolution, sections.history),
    )


def bare(query: str) -> str:
    """The question without a label before it and thanks behind it."""
    signing_off = lexicon_of(language_of(query)).signing_off
    return signing_off.sub("", _LABEL.sub("", query, count=1))


def _type(
    resolution: Resolution, reference: str | None, history: tuple[PriorTurn, ...]
) -> Literal["specific_content", "general_question", "followup", "new_topic"]:
    if resolution.status == "resolved" or (resolution.status == "failed" and history):
        return "followup"
    if reference or file_request(resolution.query) or _NAME.search(resolution.query):
        return "specific_content"
    if history:
        before = {term for turn in history for term in terms(f"{turn.question} {turn.answer}")}
        if before.isdisjoint(terms(resolution.query)):
            return "new_topic"
    return "general_question"


def _reasoning(resolution: Resolution, history: tuple[PriorTurn, ...]) -> str:
    named = ", ".join(f"“{reference}”" for reference in resolution.references)
    if resolution.status == "resolved":
        return f"{named} stands for “{resolution.stands_for}” of an earlier turn"
    if resolution.status == "failed":
        turns = len(history)
        return f"nothing in the {turns} earlier turns says what {named} refers to"
    return "the question stands alone"


def reflect(query: str, sections: Sections) -> Reflection:
    phrases = phrases_of(language_of(query))
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
    if file_request(asked) or arithmetic(asked) or tool_call(asked, sections.tools):
        return Reflection(decision="PROCEED", confidence=0.95, reasoning="it names what to do")
    if not _says_something(asked):
        return _clarify(phrases.no_content, "no word of the question says what it is about")
    # Which words they are stands in the question, and one may be a password.
    return Reflection(
        decision="PROCEED", confidence=0.9, reasoning="its words say what it is about"
    )


def _says_something(text: str) -> bool:
    """Whether a word of it has a meaning, if only for the question itself."""
    language = language_of(text)
    lexicon = lexicon_of(language)
    return any(
        word.casefold() not in lexicon.verbs
        and terms(word, language)
        and any(character.isalnum() for character in word)
        for word in words(text)
    )


def _clarify(question: str, reasoning: str) -> Reflection:
    return Reflection(
        decision="CLARIFY", confidence=0.9, reasoning=reasoning, clarification_question=question
    )
