"""The embedded model: rules and extraction behind the same interface as every other model."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel

from unified_flow.errors import ConfigError
from unified_flow.models import ModelCall, ModelReply
from unified_flow.models.embedded.analyze import analyze
from unified_flow.models.embedded.condense import condense
from unified_flow.models.embedded.extract import extract
from unified_flow.models.embedded.plan import plan
from unified_flow.models.embedded.reflect import reflect
from unified_flow.models.embedded.verify import verify
from unified_flow.turns.results import (
    Draft,
    GatheredContext,
    Plan,
    QueryAnalysis,
    Reflection,
    Verdict,
)
from unified_flow.turns.sections import Sections

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
        return ModelReply(text=answer(call.query, call.sections).model_dump_json())

    async def aclose(self) -> None:
        """Nothing to close."""
