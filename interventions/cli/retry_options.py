"""Options of the commands that let a turn go on, with the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from interventions.cli.command_group import RegisteredOptions
from interventions.cli.options import BatchFlags
from interventions.retry.contract import Scope
from interventions.retry.entry_points import OPTIONS_GROUP

Grant = Annotated[
    Scope | None,
    typer.Option(help="Let the tool run that was refused: this call, in this session, or always."),
]
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
NEWEST = 0  # no turn has this number


def _turn(text: str) -> int:
    if text == "last":
        return NEWEST
    if not text.isdecimal() or int(text) == NEWEST:
        raise typer.BadParameter(f"{text!r} is neither a turn's number nor `last`")
    return int(text)


Canary = Annotated[
    int | None,
    typer.Option(
        parser=_turn,
        metavar="TURN",
        help="With --all: the turn that goes first; `last` is the newest.",
        show_default=False,
    ),
]
Jobs = Annotated[int, typer.Option(min=1, max=32, help="With --all: how many turns at a time.")]


class ResumeFlags(BatchFlags):
    """Of those that let a turn go on. `of_resumer` are the options of the resumer's program."""

    grant: Grant
    rerun_tools: RerunTools
    tools_done: ToolsDone
    of_resumer: Annotated[Mapping[str, Any], RegisteredOptions(OPTIONS_GROUP)]
