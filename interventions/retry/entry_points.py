"""What can continue a turn, and what can read turns, each found through an entry point group.

`interventions.resumers`: a Resumer (contract.py). `interventions.resume_options`: a mapping of the
options that it takes besides (RetryRequest.options). `interventions.turns`: a TurnReader. The queue
knows no journals; a program that keeps some registers an object, or a class without arguments, that
only reads them. It may be called from any thread, and several times a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypedDict

from interventions.entry import Entry, is_open, short_id, short_ids
from interventions.errors import NoResumerError
from interventions.retry.contract import Resumer

RESUMERS_GROUP = "interventions.resumers"
OPTIONS_GROUP = "interventions.resume_options"
TURNS_GROUP = "interventions.turns"
_MEND = "mend or uninstall the package that registers it"


def has_resumer() -> bool:
    """Whether one is registered; it is not loaded, which may take long."""
    from importlib.metadata import entry_points  # late: it costs as much as the whole of --help

    return bool(entry_points(group=RESUMERS_GROUP))


def find_resumer() -> Resumer:
    """Raises NoResumerError when none is installed, or it cannot be loaded or is none."""
    resumer: Resumer = _required(RESUMERS_GROUP, "the resumer", "continue")
    if not callable(getattr(resumer, "retry", None)):
        raise NoResumerError(f"the resumer {resumer!r} has no retry(home, request)", hint=_MEND)
    return resumer


def _required(group: str, what: str, does: str) -> Any:
    if (found := registered(group, what)) is None:
        raise NoResumerError(
            f"nothing that is installed can {does} a turn",
            hint=f"a program registers what can under the entry point group {group!r}; "
            "until then mend the cause, ask again, and resolve with a note",
        )
    return found


def registered(group: str, what: str) -> Any:
    """The object of an entry point group, None without one. Raises NoResumerError."""
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            found = point.load()
            return found() if isinstance(found, type) else found
        except Exception as error:  # a foreign module may raise anything
            raise NoResumerError(
                f"{what} {point.name!r} ({point.value}) cannot be loaded: {error}",
                hint=_MEND,
            ) from error
    return None


def done_with(resumer: Resumer) -> None:
    """What it has kept for further turns goes."""
    if callable(close := getattr(resumer, "close", None)):
        close()


class LiveTurn(TypedDict, total=False):
    """One turn as its journal has it now; only `turn_id` and `status` are needed.

    `status` is running, answered, clarify, failed or interrupted. `ribbon` is that of
    `context.turn`: dicts of `name`, `status` (completed, running, failed, interrupted,
    not_run) and `duration_ms`. `started_at` is ISO 8601 with a zone. `doing` says what runs right
    now (a tool, a model). `error` is redacted. Texts are shown as plain text.

    `steps` are what happened, in the order in which it began: dicts of `kind` (run: a person or
    another process went on with the turn; phase; model; tool), `name`, `status` (of a ribbon),
    `started_at`, `duration_ms` (None while it runs) and `text` (a model's reply, what a tool was
    asked). `answer` is the text for the user, `sources` what it rests on, a line each.
    """

    turn_id: int
    status: str
    session_id: str
    question: str
    started_at: str
    duration_ms: float | None
    ribbon: list[dict[str, Any]]
    doing: str
    error: str
    intervention_id: str | None
    steps: list[dict[str, Any]]
    answer: str
    sources: list[str]


class TurnReader(Protocol):
    """Damaged journals are left out, not raised; a home without turns has none."""

    def latest(self, home: Path, limit: int) -> Sequence[LiveTurn]:
        """The turns that were begun or went on last, running ones first, then the newest."""
        ...

    def turn(self, home: Path, turn_id: int) -> LiveTurn | None: ...

    def changes(self, home: Path, turn_id: int) -> Sequence[str]:
        """What differs now from that on which the turn stopped, a line each. May raise."""
        ...

    def as_pytest(self, entry: Entry, home: Path) -> str:
        """A test module that replays the entry's failure. Raises QueueError."""
        ...


def find_turn_reader() -> TurnReader:
    """Raises NoResumerError."""
    reader: TurnReader = _required(TURNS_GROUP, "the reader of turns", "read")
    return reader


def lost_turns(entries: Iterable[Entry], home: Path) -> tuple[str, str] | None:
    """Of open entries of which no retry can pass, because their turn is gone or its journal cannot
    be read: what is wrong, and what to do about it. Raises NoResumerError.

    Entries that are marked as superseded say the same themselves."""
    reader = find_turn_reader()
    waiting = (e for e in entries if is_open(e) and e["turn_id"] and not e.get("superseded"))
    lost = [entry["id"] for entry in waiting if reader.turn(home, entry["turn_id"]) is None]
    if not lost:
        return None
    what = f"no retry can pass, their turns are gone or cannot be read: {short_ids(lost)}"
    ids = " ".join(map(short_id, lost))
    return what, f'ask their questions again; interventions dismiss {ids} --note "its turn is gone"'
