"""Phase 0: what is asked, with references to earlier turns resolved."""

from __future__ import annotations

import re
from typing import Literal

from unified_flow.lib.text import language_of, terms
from unified_flow.lib.text.lexicon import lexicon_of
from unified_flow.models.embedded.intents import file_intent, talk_of
from unified_flow.models.embedded.references import Resolution, resolve
from unified_flow.turns.results import PriorTurn, QueryAnalysis, ReferenceResolution
from unified_flow.turns.sections import Sections

# What is written as something's own name: code, a path, quoted words, an identifier.
_SPECIFIC = re.compile(
    r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|\b(\w+(?:::\w+)+|\w+_\w+|[\w-]+(?:/[\w.-]+)+|[\w-]+\.(?:md|rst|txt|py|html?|json|ya?ml|toml))\b"
)
_NAME = re.compile(r"(?<!^)(?<![?.!]\s)\b[A-ZÅÄÖÉÈ][\w-]*\b")


def analyze(query: str, sections: Sections) -> QueryAnalysis:
    talk = talk_of(query)
    if talk == "recall":
        return _recall(query, sections.history)
    resolution = Resolution("not_needed", query) if talk else resolve(query, sections.history)
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


def _recall(query: str, history: tuple[PriorTurn, ...]) -> QueryAnalysis:
    """Later phases see the gathered turns only, so what was asked is resolved here."""
    lexicon = lexicon_of(language_of(query))
    first = lexicon.first_recalled.search(query)
    asked = [turn.question for turn in (history[:1] if first else history)]
    return QueryAnalysis(
        resolved_query=query,
        reference_resolution=ReferenceResolution(
            status="resolved" if asked else "not_needed",
            resolved_to="\n".join(asked) or None,
        ),
        query_type="followup" if asked else "general_question",
        reasoning="it asks about this session, not about the documents",
    )


def _type(
    resolution: Resolution, reference: str | None, history: tuple[PriorTurn, ...]
) -> Literal["specific_content", "general_question", "followup", "new_topic"]:
    if resolution.status == "resolved" or (resolution.status == "failed" and history):
        return "followup"
    if file_intent(resolution.query) or reference or _NAME.search(resolution.query):
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
        return f"nothing in the {turns} earlier turns tells what {named} refers to"
    return "the question stands alone"
