"""The embedded model: rules and extraction behind the interface of every model."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel

from unified_flow.errors import ConfigError
from unified_flow.lib.text import language_of, sentences, terms
from unified_flow.models import ModelCall, ModelReply
from unified_flow.models.embedded.analysis import analyze, reflect
from unified_flow.models.embedded.extraction import extract
from unified_flow.models.embedded.planning import plan
from unified_flow.models.embedded.verification import verify
from unified_flow.turns.results import (
    Draft,
    GatheredContext,
    Plan,
    QueryAnalysis,
    Reflection,
    Verdict,
)
from unified_flow.turns.sections import Sections

_SENTENCES = 2
_CHARACTERS = 400


def condense(query: str, sections: Sections) -> GatheredContext:
    """Phase 2, if the context is too long: cut to what bears on the question."""
    gathered = sections.context_gatherer or GatheredContext()
    analysis = sections.query_analyzer
    asked = analysis.resolved_query if analysis is not None else query
    turns = [
        turn.model_copy(
            update={
                "question": turn.question[:_CHARACTERS],
                "answer": _shortened(turn.answer, asked),
            }
        )
        for turn in gathered.prior_turns
    ]
    memories = [
        memory.model_copy(update={"text": _shortened(memory.text, asked)})
        for memory in gathered.memories
    ]
    return gathered.model_copy(
        update={
            "prior_turns": turns,
            "memories": memories,
            "reasoning": "shortened to the sentences that bear on the question",
        }
    )


def _shortened(text: str, question: str) -> str:
    """The sentences that share most with the question, verbatim and in their order."""
    if len(text) <= _CHARACTERS:
        return text
    language = language_of(text)
    wanted = set(terms(question, language))
    spans = sentences(text)
    shared = [len(wanted & set(terms(text[start:end], language))) for start, end in spans]
    best = sorted(range(len(spans)), key=lambda place: -shared[place])[:_SENTENCES]
    chosen = " ".join(text[slice(*spans[place])] for place in sorted(best))
    return chosen[:_CHARACTERS] or text[:_CHARACTERS]


_ANSWERS: dict[type[BaseModel], Callable[[str, Sections], BaseModel]] = {
    QueryAnalysis: analyze,
    Reflection: reflect,
    GatheredContext: condense,
    Plan: plan,
    Draft: extract,
    Verdict: verify,
}


class EmbeddedModel:
    """No network, no weights, no key; the same call always gets the same reply."""

    name = "embedded"

    async def complete(self, call: ModelCall) -> ModelReply:
        """Raises ConfigError for an output that no phase of this flow has."""
        answer = _ANSWERS.get(call.output)
        if answer is None:
            raise ConfigError(
                f"the embedded model has no rules for {call.output.__name__}",
                hint="map the phase that asks for it to a language model",
            )
        said = answer(call.query, call.sections)
        return ModelReply(said.model_dump_json(), answer=said)

    async def aclose(self) -> None:
        """Nothing to close."""
