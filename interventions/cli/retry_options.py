"""Options of the commands that let a turn go on, with the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from interventions.cli.command_group import RegisteredOptions
from interventions.retry.contract import Scope
from interventions.retry.entry_points import OPTIONS_GROUP

Grant = Annotated[
    Scope | None,
    typer.Option(help="Let the tool run that was refused: this call, in this session, or always."),
]
NoteText = Annotated[str, typer.Option("--note", "-m", help="What you mended.")]
FromPhase = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PHASE",
        help="Go back: drop what this phase and those after it had found.",
    ),
]
RerunTools = Annotated[
    bool, typer.Option("--rerun-tools", help="Let tools that may have written write again.")
]
ToolsDone = Annotated[
    bool, typer.Option("--tools-done", help="Count a call that was cut off while writing as done.")
]
Edit = Annotated[bool, typer.Option("--edit", help="Open the phase's input in $EDITOR first.")]
OfResumer = Annotated[Mapping[str, Any] | None, RegisteredOptions(OPTIONS_GROUP)]
Canary = Annotated[
    int | None,
    typer.Option(metavar="TURN", help="With --all: the turn that goes first.", show_default=False),
]
Jobs = Annotated[int, typer.Option(min=1, max=32, help="With --all: how many turns at a time.")]
