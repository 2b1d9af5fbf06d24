"""Options and arguments that several commands share, with the same words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import typer
from typer import Argument, Option

from interventions.cli.terminal import note
from interventions.errors import NotFoundError
from interventions.home import find_home, settings_files

if TYPE_CHECKING:
    from interventions.entry import Entry
    from interventions.queue import InterventionQueue
    from interventions.view.query import Query

# `find_home` reads the variable: as the option's own it would beat a flag further left.
_DEFAULT = "[env var: UNIFIED_FLOW_HOME; default: the nearest one upwards]"
_HOME = f"Folder that holds shared_state/ and logs/ {_DEFAULT}."
Home = Annotated[Path | None, Option(help=_HOME, show_default=False)]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
# For a command that prints entries as they come: both mean one object a line.
AsLines = Annotated[bool, Option("--jsonl", "--json", help="Print one JSON object a line.")]
AsJsonl = Annotated[bool, Option("--jsonl", help="Print one JSON object a line.")]
Output = Annotated[
    Path | None,
    Option("--output", "-o", help="Write this file instead of stdout.", show_default=False),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
_VERSION = "Refuse if somebody changed it since this version."
ExpectedVersion = Annotated[int | None, Option("--expected-version", help=_VERSION)]
By = Annotated[str | None, Option(help="Who does it [default: you].", envvar="INTERVENTIONS_USER")]
NoteText = Annotated[str, Option("--note", "-m", help="What you mended.")]


class ChangeFlags(TypedDict):
    """Options of every command that changes an entry, as `**flags: Unpack[ChangeFlags]`."""

    expected_version: ExpectedVersion
    by: By
    home: Home
    as_json: AsJson


class BatchFlags(ChangeFlags):
    """The flags of commands that change many entries."""

    yes: Yes


Grant = Annotated[
    Literal["once", "session", "always"] | None,  # `Scope`, whose module most commands do not need
    Option(help="Let the tool run that was refused: this call, in this session, or always."),
]
_FROM = "Go back: drop what this phase and those after it had found."
FromPhase = Annotated[str | None, Option("--from", metavar="PHASE", help=_FROM)]
RerunTools = Annotated[
    bool, Option("--rerun-tools", help="Let tools that may have written write again.")
]
ToolsDone = Annotated[
    bool, Option("--tools-done", help="Count a call that was cut off while writing as done.")
]
_EVERY = "Every turn that waits for the same fix; one first, to see if it helps."
EveryTurn = Annotated[bool, Option("--all", help=_EVERY)]
Edit = Annotated[bool, Option("--edit", help="Open the phase's input in $EDITOR first.")]
NEWEST = 0  # no turn has this number


def _turn(text: str) -> int:
    if text == "last":
        return NEWEST
    if not text.isdecimal() or int(text) == NEWEST:
        raise typer.BadParameter(f"{text!r} is neither a turn's number nor `last`")
    return int(text)


_FIRST = "With --all: the turn that goes first; `last` is the newest."
Canary = Annotated[
    int | None, Option(parser=_turn, metavar="TURN", help=_FIRST, show_default=False)
]
Jobs = Annotated[int, Option(min=1, max=32, help="With --all: how many turns at a time.")]


class ResumeFlags(BatchFlags):
    """What lets a turn go on. `of_resumer` are the options of the resumer's program."""

    grant: Grant
    rerun_tools: RerunTools
    tools_done: ToolsDone
    of_resumer: Mapping[str, Any]


_TERMS = "sev:critical phase:planner tool:x type:captcha is:open|resolved|snoozed|regression "
_TERMS += "age:>1h session:abc text"
QueryWords = Annotated[
    list[str] | None, Argument(metavar="[QUERY]...", help=_TERMS, show_default=False)
]
Session = Annotated[str | None, Option(help="Of this session alone.", show_default=False)]
Limit = Annotated[int, Option("--limit", "-n", min=0, max=10**9, help="At most so many; 0: all.")]


class PrintFlags(TypedDict):
    """Options of every command that prints entries, as `**flags: Unpack[PrintFlags]`."""

    home: Home
    as_json: AsJson
    as_jsonl: AsJsonl


class ListFlags(PrintFlags):
    session: Session


def query_of(words: list[str] | None, session: str | None = None) -> Query:
    """The query of the command line, with `--session` as one more term. Raises QueryError."""
    from interventions.view.query import parse

    text = " ".join(words or [])
    if session is not None:
        escaped = session.replace("\\", r"\\").replace('"', r"\"")
        text = f'{text} session:"{escaped}"'.strip()
    query = parse(text)
    for remark in query.remarks:
        note(remark)
    return query


_ID_HELP = "Any unique beginning of an id or of its last part; `last` is the newest."
Id = Annotated[str, Argument(metavar="ID", help=_ID_HELP, show_default=False)]
Ids = Annotated[list[str] | None, Argument(metavar="ID...", help=_ID_HELP, show_default=False)]


def the_home(home: Path | None) -> Path:
    """Raises NotFoundError: a folder that was mistyped is no empty queue."""
    place = find_home(home)
    if not place.is_dir():
        what = "the home is the folder that holds shared_state/ and logs/"
        raise NotFoundError(f"there is no folder {place}", hint=what)
    return place


def the_queue(home: Path | None) -> InterventionQueue:
    from interventions.queue import queue_at

    return queue_at(the_home(home))


def _is_shared(home: Path) -> bool:
    """Whether a database keeps its queue. Most homes set nothing: then nothing is loaded for it."""
    if not settings_files(home) and "UNIFIED_FLOW_SHARED__DATABASE_URL_ENV" not in os.environ:
        return False
    from interventions.settings import SharedSettings, settings_of

    return bool(settings_of(home, SharedSettings).database_url_env)


def read_entries(home: Path | None) -> list[Entry]:
    """The entries; those of the file without loading what writing needs."""
    from interventions.storage.queue_file import read_checked

    place = the_home(home)
    state = None if _is_shared(place) else read_checked(place)
    if state is None:
        from interventions.storage.file_store import store_at  # late: it loads SQLite

        state = store_at(place).read()
    for _, why in state.unusable:
        note(f"one entry cannot be read: {why}; to set it aside: interventions doctor")
    return list(state.entries)
