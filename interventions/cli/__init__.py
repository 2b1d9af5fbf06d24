"""The commands of `interventions`; `app` can also be mounted by another Typer application."""

from __future__ import annotations

from interventions.cli.command_group import CommandGroup

COMMANDS = {
    "list": "entries:list_",
    "show": "entries:show",
    "resolve": "transitions:resolve",
    "dismiss": "transitions:dismiss",
    "snooze": "transitions:snooze",
    "reopen": "transitions:reopen",
    "undo": "transitions:undo",
    "assign": "transitions:assign",
    "retry": "retry:retry",
    "similar": "entries:similar",
    "history": "entries:history",
    "health": "upkeep:health",
    "report": "upkeep:report",
    "drain": "upkeep:drain",
    "doctor": "upkeep:doctor",
    "schema": "upkeep:schema",
    "export": "entries:export",
    "watch": "entries:watch",
}
SECTIONS = {"Commands": COMMANDS}


class Commands(CommandGroup):
    sections = SECTIONS


app = Commands.app(
    "Failures that wait for a person, and what was done.\n\nStart with:  interventions list"
)
