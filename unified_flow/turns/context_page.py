"""The turn as a page that a person reads: what each event adds to `context.md`."""

from __future__ import annotations

from typing import Any

from interventions.secrets.redaction import WHOLE, redact
from unified_flow.lib.compact_json import encode
from unified_flow.turns import events
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.fold import OUTPUT

NUMBER = {phase: number for number, phase in enumerate(OUTPUT)}


def markdown(event: AnyEvent, *, clean: bool = False) -> str:
    """`clean`: what a phase found without secrets, which only its structure may tell; as text
    they are everywhere the reader's to redact."""
    match event:
        case events.PhaseCompleted():
            again = f", visit {event.visit}" if event.visit > 1 else ""
            head = (
                f"\n## {NUMBER[event.phase]}. {event.phase}{again} ({event.duration_ms:.1f} ms)\n"
            )
            return head + _body(redact(event.output, WHOLE) if clean else event.output)
        case events.PhaseStarted() | events.ModelCalled() | events.ToolStarted():
            return ""  # the phase's end tells
        case events.TurnStarted():
            return (
                f"# Turn {event.turn_id}\n\n{_quoted(event.question)}\n\n"
                f"session {event.session_id}, request {event.request_id}, {event.at:%F %T} UTC\n"
            ) + (f"\nFork of turn {event.fork_of}\n" if event.fork_of else "")
        case events.PhaseFailed():
            kind = ", ".join(filter(None, (event.category, event.severity)))
            more = (("caused by", event.cause), ("hint:", event.hint))
            told = [f"{name} {text}" for name, text in more if text]
            told += [f"intervention {event.intervention_id}"] if event.intervention_id else []
            return (
                f"\n## {NUMBER[event.phase]}. {event.phase} failed ({kind})\n\n"
                f"{_quoted(f'{event.error_type}: {event.error_message}')}\n\n"
                + "".join(f"{line}\n" for line in told)
            )
        case events.TurnResumed():
            head = f"\nResumed at {event.phase} by {event.by}, {event.at:%F %T} UTC\n"
            return head + _edited(redact(event.edited, WHOLE) if clean else event.edited)
        case events.TurnTakenOver():
            return f"\nTaken over by {event.runner}, {event.at:%F %T} UTC\n"
        case events.TurnAbandoned():
            return f"\nAbandoned by {event.by}: {event.reason}\n"
        case events.TurnSalvaged():
            return f"\nSalvaged by {event.by}: {event.lines} damaged lines are in {event.aside}\n"
        case events.GuardrailChecked() if event.decision != "pass":
            return f"\nGuardrail ({event.stage}): {event.decision}, {event.reason}\n"
        case events.TurnInterrupted():
            return f"\nInterrupted in {event.phase or 'no phase'}: {event.reason}\n"
        case events.TurnCompleted():
            kept = "" if event.saved or event.status != "answered" else ", not saved"
            return f"\n{event.status.capitalize()}{kept} after {event.duration_ms:.0f} ms.\n"
        case _:
            return ""


def _edited(edited: dict[str, Any]) -> str:
    """What a person put in the place of what stands above."""
    text = ""
    for name, value in edited.items():
        now = f"\n{_quoted(value)}\n" if isinstance(value, str) else _body(value)
        text += f"\nEdited, {name} is from here on:\n{now}"
    return text


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _body(output: Any) -> str:
    items = output if isinstance(output, tuple | list) else [output]
    return "".join([f"\n{_fields(item)}" for item in items])


def _fields(item: Any) -> str:
    """A line a field; `item` is a section of the turn, or the same as it was read back."""
    values = item if isinstance(item, dict) else vars(item)
    return "".join([f"- {key}: {_value(value)}\n" for key, value in values.items() if value])


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("\n", "\n  ")
    return encode(value).decode()
