"""A phase's input as a text that a person edits, and what they changed of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from interventions.storage.kept import keep, where
from unified_flow.engine.services import Services
from unified_flow.errors import InputError
from unified_flow.errors.turns import NotResumableError
from unified_flow.resume.entry_phase import END, where_to_go_on
from unified_flow.turns.events import Runner, TurnResumed
from unified_flow.turns.folding import OUTPUT, apply
from unified_flow.turns.inputs import checked_question
from unified_flow.turns.journal import digest
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn

QUESTION = "question"


def edited_input(
    services: Services,
    turn: Turn,
    edit: Callable[[str, str], str],
    *,
    from_phase: str | None,
    settled: bool,
) -> tuple[str, str, dict[str, Any]]:
    """(the phase, a digest of its input, what `edit` changed of that); `edit` takes a file's name
    and a text.

    `settled`: it is clear what becomes of calls that may have written. Raises NotResumableError,
    and what was written is kept then, RecipeError, and what `edit` raises.
    """
    limits = services.settings.limits
    phase = where_to_go_on(turn, limits, from_phase=from_phase, rerun_tools=settled)
    if phase == END:
        raise NotResumableError(f"turn {turn.turn_id} has no phase left to edit the input of")
    before = shown(services, turn, phase, rewound=from_phase is not None)
    name = f"{phase}.json"
    text = edit(name, as_text(before))
    try:
        return phase, digest(before), edits(before, text)
    except NotResumableError as exc:
        kept = where(keep(name, text.encode("utf-8", "surrogatepass")))
        hint = "; ".join(filter(None, (exc.hint, kept)))
        raise NotResumableError(str(exc), hint=hint) from exc


def shown(services: Services, turn: Turn, phase: str, *, rewound: bool) -> dict[str, Any]:
    """What a person gets to see and to edit. Raises RecipeError."""
    return input_of(turn, phase, services.recipe(phase).head.reads, rewound=rewound)


def input_of(turn: Turn, phase: str, reads: frozenset[str], *, rewound: bool) -> dict[str, Any]:
    """The question and the sections that the phase reads, as they stand when it begins."""
    nobody = Runner(user="", host="", pid=0)
    begun = TurnResumed(
        phase=phase, rewound=rewound, runner=nobody, by="", via="", config_digest=""
    )
    standing = apply(turn, begun)
    sections = written(standing.sections)
    return {QUESTION: standing.question} | {
        name: sections[name] for name in OUTPUT if name in reads and name in sections
    }


def as_text(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def edits(before: dict[str, Any], text: str) -> dict[str, Any]:
    """What differs, by name, checked. Raises NotResumableError; nothing has happened then."""
    try:
        after = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise NotResumableError(f"what was edited is no JSON: {exc}") from exc
    if not isinstance(after, dict) or set(after) != set(before):
        raise NotResumableError(
            "a section was added or taken away", hint=f"keep these: {', '.join(before)}"
        )
    changed = {name: value for name, value in after.items() if value != before[name]}
    for name, value in changed.items():
        try:
            if name == QUESTION:
                changed[name] = checked_question(value)
            else:
                OUTPUT[name].validate_python(value)
        except (ValidationError, InputError) as exc:
            reason = str(exc).splitlines()
            raise NotResumableError(f"{name} cannot be used: {' '.join(reason[:3])}") from exc
    return changed
