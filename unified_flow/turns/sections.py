"""The turn as a document: what the phases have written so far, and what a phase may read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from unified_flow.turns import results

T = TypeVar("T")


def changed(record: T, **changes: Any) -> T:
    """`dataclasses.replace` for plain frozen dataclasses, without going through every field.

    A turn has two dozen fields and changes two dozen times; that was a fifth of what a turn costs
    beside its disk (benchmarks/turn.py). A name that is no field is a mistake, as it is there.
    """
    fields = record.__dict__
    merged = fields | changes
    if len(merged) > len(fields):
        unknown = ", ".join(sorted(changes.keys() - fields.keys()))
        raise TypeError(f"{type(record).__name__} has no field {unknown}")
    new: T = object.__new__(type(record))
    object.__setattr__(new, "__dict__", merged)
    return new


@dataclass(frozen=True)
class ToolDescription:
    """What a planner needs to know of a tool; `parameters` is a JSON schema. `own`: the user's,
    and not built in."""

    name: str
    description: str
    parameters: dict[str, Any]
    own: bool = False


@dataclass(frozen=True)
class Sections:
    """Sections 0 to 7, each under the name of its phase, and three inputs.

    `history` holds the session's recent turns, oldest first; `evidence` the sentences of
    `coordinator` that rules mark for a small model. A section that is not written yet, or that the
    recipe does not read, is None (or empty). In a loop the latest stands: the planner's last plan,
    the last draft, the last verdict; `coordinator` grows.
    """

    history: tuple[results.PriorTurn, ...] = ()
    tools: tuple[ToolDescription, ...] = ()
    evidence: tuple[str, ...] = ()
    query_analyzer: results.QueryAnalysis | None = None
    reflection: results.Reflection | None = None
    context_gatherer: results.GatheredContext | None = None
    planner: results.Plan | None = None
    coordinator: tuple[results.ToolResult, ...] = ()
    synthesis: results.Draft | None = None
    validation: results.Verdict | None = None
    save: results.Saved | None = None

    def only(self, names: frozenset[str], **inputs: Any) -> Sections:
        """The same with `inputs` in their places, and every section emptied that is not in
        `names`."""
        own = vars(self) | inputs
        return changed(EMPTY, **{name: own[name] for name in names})


EMPTY = Sections()
NAMES = frozenset(f.name for f in fields(Sections))
PASSAGES = "passages"  # the ranked part of `coordinator`: what searches found


def written(sections: Sections) -> dict[str, Any]:
    """The sections that have content, JSON-able, by name."""
    values = {own.name: getattr(sections, own.name) for own in fields(sections)}
    return {
        name: [item.model_dump(mode="json") for item in value]
        if isinstance(value, tuple)
        else value.model_dump(mode="json")
        for name, value in values.items()
        if value
    }
