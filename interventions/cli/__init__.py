"""The commands of `interventions`; `app` can also be mounted by another Typer application."""

from __future__ import annotations

from interventions.cli.command_group import CommandGroup

_ENTRIES = ("show", "similar", "history", "export", "watch")
_TRANSITIONS = ("resolve", "dismiss", "snooze", "reopen", "undo", "assign")
_UPKEEP = ("health", "report", "drain", "doctor", "schema")
SECTIONS = {
    "Read": {"list": "entries:list_"} | {name: f"entries:{name}" for name in _ENTRIES},
    "Act": {"retry": "retry:retry"} | {name: f"transitions:{name}" for name in _TRANSITIONS},
    "The queue": {name: f"upkeep:{name}" for name in _UPKEEP},
}


class Commands(CommandGroup):
    sections = SECTIONS


app = Commands.app(
    "Failures that wait for a person, and what was done.\n\nStart with:  interventions list"
)
