"""What a phase asks of a model: the call that its recipe makes of the turn."""

from __future__ import annotations

from pydantic import BaseModel

from unified_flow.errors import LimitReachedError
from unified_flow.models import ModelCall, Stream
from unified_flow.phases.context import ModelInputs
from unified_flow.phases.recipe import Recipe
from unified_flow.turns.lines import digest
from unified_flow.turns.turn import Turn


def model_call(
    turn: Turn,
    phase: str,
    recipe: Recipe,
    output: type[BaseModel],
    inputs: ModelInputs,
    *,
    limit: int,
    stream: Stream | None = None,
) -> ModelCall:
    """Raises LimitReachedError before one call more than `limit` in this turn."""
    if turn.counters.model_calls >= limit:
        raise LimitReachedError("model_calls", turn.counters.model_calls, limit)
    head = recipe.head
    return ModelCall(
        phase=phase,
        output=output,
        prompt=recipe.prompt,
        query=turn.question,
        sections=turn.sections.only(head.reads, **inputs),
        temperature=head.temperature,
        max_tokens=head.token_budget,
        budgets=head.budgets,
        top_p=head.top_p,
        stream=stream,
    )


def request_digest(call: ModelCall) -> str:
    """Covers everything that decides the answer but the model itself."""
    seen = [call.prompt, call.query, call.sections, call.budgets]
    seen += [call.temperature, call.top_p, call.max_tokens]
    return digest([call.output.__name__, *seen])
