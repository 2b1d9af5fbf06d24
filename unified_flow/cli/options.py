"""Options that several commands share, with the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict, get_type_hints

import click
import typer
from typer import Argument, Option

# Those of the queue's commands, by the same names.
from interventions.cli.options import AsJson as AsJson
from interventions.cli.options import AsJsonl as AsJsonl
from interventions.cli.options import By as By
from interventions.cli.options import Home as Home
from interventions.cli.options import NoteText as NoteText
from interventions.cli.options import Output as Output
from interventions.cli.options import Yes as Yes

ALL = 10**9  # what a store takes for no limit
LAST = "last"  # the newest session or run; `turns/archive.py` has that of turns

Limit = Annotated[int, Option("--limit", "-n", min=0, help="At most so many, the newest; 0: all.")]
User = Annotated[str, Option("--user", "-u", metavar="ID", help="Whose rules and memories apply.")]
Session = Annotated[str | None, Option(help="Of this session; `last` is the newest.")]
OwnSession = Annotated[
    str | None,
    Option(
        "--session",
        help="Go on with this session, so that 'it' is understood; `last` is the newest.",
    ),
]
Last = Annotated[bool, Option("--last", help="The same as --session last.")]
OnlyUser = Annotated[str | None, Option("--user", "-u", metavar="ID", help="Only this user's.")]
Turn = Annotated[
    str, Argument(metavar="TURN", help="The turn's number or request id; `last` is the newest.")
]
TurnOrIntervention = Annotated[
    str,
    Argument(
        metavar="TURN_OR_INTERVENTION",
        help="A turn's number or request id (`last`: the newest), or an intervention's id.",
    ),
]
Force = Annotated[bool, Option("--force", help="Replace a file that is there.")]
Docs = Annotated[
    list[str] | None,
    Option(
        help="File, folder or web page to answer from; may be given again.",
        # As text: a path would swallow a slash of an address.
        click_type=click.Path(path_type=str),
    ),
]
CollectionName = Annotated[
    str | None,
    Option(
        "--collection",
        metavar="NAME",
        help="A named index of its own [default: the setting `collection`].",
    ),
]


def session_or_last(session: str | None, last: bool) -> str | None:
    """The session that --session and --last name together."""
    if session is not None and last:
        raise typer.BadParameter("give --session, or --last")
    return LAST if last else session


class ModelOptions(TypedDict, total=False):
    """Options that many commands take, as `**chosen: Unpack[ModelOptions]`."""

    model: Annotated[
        str | None,
        Option(help="'embedded', a [models.*] table, or a model of --base-url."),
    ]
    base_url: Annotated[
        str | None, Option(help="OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1.")
    ]
    api_key_env: Annotated[
        str | None, Option(help="Variable that holds the key [default: OPENAI_API_KEY].")
    ]
    api_key_file: Annotated[Path | None, Option(help="File that holds the key.")]


class ToolOptions(TypedDict, total=False):
    docs: Docs
    tool_modules: Annotated[
        list[str] | None,
        Option(
            "--tools",
            metavar="MODULE",
            help="Tools of your own: module, module:function or file.py with functions under"
            ' @tool(access="reads"), or "writes" or "network"; may be given again.',
        ),
    ]
    allow_tools: Annotated[
        list[str] | None,
        Option(
            "--allow-tool",
            metavar="PATTERN",
            help="A tool that may write or use the network, such as 'time.*'; may be given again.",
        ),
    ]


class TurnOptions(ToolOptions, ModelOptions, total=False):
    pass


# What `interventions retry` takes besides (entry point group interventions.resume_options).
OF_RESUME = get_type_hints(TurnOptions, include_extras=True)


class FlowOptions(TurnOptions, total=False):
    collection: CollectionName
