"""Options and arguments that several commands share, with the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interventions.retry.contract import Scope

if TYPE_CHECKING:
    from interventions.entry import Entry
    from interventions.queue import InterventionQueue

Home = Annotated[
    Path | None,
    typer.Option(
        # `find_home` reads the variable: as the option's own it would beat a flag further left.
        help="Folder that holds shared_state/ and logs/ [env var: UNIFIED_FLOW_HOME; default: the "
        "nearest one upwards].",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsJsonl = Annotated[bool, typer.Option("--jsonl", help="Print one JSON object a line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Grant = Annotated[
    Scope | None,
    typer.Option(help="Let the tool run that was refused: this call, in this session, or always."),
]
By = Annotated[
    str | None, typer.Option(help="Who does it [default: you].", envvar="INTERVENTIONS_USER")
]
QueryWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]...",
        help="sev:critical phase:planner tool:x type:captcha is:open|resolved|snoozed|regression "
        "age:>1h session:abc text",
        show_default=False,
    ),
]


def _ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """For the shell's completion: the short ids of open entries, each with what failed."""
    from interventions.entry import is_open, short_id, worst_first
    from interventions.errors import QueueError
    from interventions.home import find_home, queue_file
    from interventions.storage.file_read import read_state
    from interventions.view.plaintext import one_line

    try:
        state = read_state(queue_file(find_home(ctx.params.get("home"))))
    except QueueError:
        return []
    return [
        (one_line(short_id(entry["id"])), one_line(f"{entry['phase']}: {entry['error_type']}"))
        for entry in worst_first(filter(is_open, state.entries))
        if short_id(entry["id"]).startswith(incomplete)
    ]


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Any unique beginning of an id or of its last part.",
        autocompletion=_ids,
        show_default=False,
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...",
        help="Any unique beginning of an id or of its last part.",
        autocompletion=_ids,
        show_default=False,
    ),
]


def the_queue(home: Path | None) -> InterventionQueue:
    from interventions.settings import queue_at

    return queue_at(home)


def read_entries(home: Path | None) -> list[Entry]:
    """What is in the file now, loading nothing that writing needs."""
    from interventions.home import find_home, queue_file
    from interventions.storage.file_read import read_state

    return list(read_state(queue_file(find_home(home))).entries)
