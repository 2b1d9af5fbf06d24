"""A model call as the flow makes it, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from unified_flow.models import ModelCall
from unified_flow.turns.results import Reflection
from unified_flow.turns.sections import Sections

PROCEED = Reflection(decision="PROCEED", confidence=0.9)


def call(
    output: type[BaseModel] = Reflection,
    *,
    phase: str = "reflection",
    prompt: str = "Is the question clear enough?",
    query: str = "What is the queue for?",
    sections: Sections | None = None,
    budgets: Mapping[str, int] | None = None,
) -> ModelCall:
    read = sections or Sections()
    return ModelCall(phase, output, prompt, query, read, 0.3, 512, budgets or {})
