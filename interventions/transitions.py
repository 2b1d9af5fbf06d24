"""What a person does to an entry: resolve, dismiss, snooze, reopen, assign, and undo of these.

Each is a pure function from an entry and who acts when to the fields that change; `change` writes
them. The journal keeps the fields before and after, which makes undo the same for all of them.
"""

from __future__ import annotations

import getpass
import secrets
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from types import NoneType
from typing import cast

from interventions.entry import MOST, Entry, EntryFields, Resolution, Transition, complete, is_open
from interventions.errors import ArgumentError, ConflictError, expect
from interventions.secrets.redaction import redact_text
from interventions.storage.store import Transaction
from interventions.times import to_text, utc_now


@dataclass(frozen=True)
class Actor:
    """Who makes a change, when, and through what (`cli`, `monitor`, `library`, `retry`)."""

    name: str
    at: datetime
    via: str
    host: str
    expected_version: int | None = None

    @classmethod
    def current(
        cls, *, by: str | None = None, via: str = "library", expected_version: int | None = None
    ) -> Actor:
        expect("by", by, str, NoneType)
        expect("via", via, str)
        name = redact_text(by, 100) if by else _user()
        through = redact_text(via, 100)
        return cls(name, utc_now(), through, socket.gethostname(), expected_version)

    def line(self, action: str, intervention_id: str | None = None) -> Transition:
        """What every line of the journal has."""
        who: Transition = {"by": self.name, "via": self.via, "host": self.host}
        name = secrets.token_hex(6)
        what: Transition = {"transition_id": name, "at": to_text(self.at), "action": action}
        return {**what, "id": intervention_id, **who}


def resolve(entry: Entry, actor: Actor, *, note: str, verified: str | None = None) -> EntryFields:
    """`verified` is the state of the turn that was resumed and got past the failed phase."""
    _must_be_open(entry, "resolve")
    row: Resolution = {"kind": "resolved", "verified": verified is not None}
    if verified is not None:
        row["turn_status"] = verified
    return {"resolved_at": to_text(actor.at), **_closing(entry, actor, note, row)}


def dismiss(entry: Entry, actor: Actor, *, note: str) -> EntryFields:
    """Not worth fixing: closed, but never counted as solved."""
    _must_be_open(entry, "dismiss")
    row: Resolution = {"kind": "dismissed"}
    return {"dismissed_at": to_text(actor.at), **_closing(entry, actor, note, row)}


def snooze(
    entry: Entry,
    actor: Actor,
    *,
    until: datetime | None,
    duration: timedelta | None,
    until_n_more: int | None,
) -> EntryFields:
    _must_be_open(entry, "snooze")
    if sum(value is not None for value in (until, duration, until_n_more)) != 1:
        raise ArgumentError("snooze needs a time, a duration or a number", argument="until")
    if until_n_more is not None:
        expect("until_n_more", until_n_more, int)
        if not 1 <= until_n_more < MOST - entry["occurrences"]:
            raise ArgumentError("until_n_more must be from 1 to 2**62", argument="until_n_more")
        count = entry["occurrences"] + until_n_more
        return {"snoozed_until": None, "snoozed_until_occurrences": count}
    wake_at = _wake_at(until, duration, actor.at)
    return {"snoozed_until": wake_at, "snoozed_until_occurrences": None}


def reopen(entry: Entry, actor: Actor) -> EntryFields:
    if is_open(entry):
        what = f"{entry['id']} is open, so it cannot be reopened"
        raise ConflictError(what, hint="to end a snooze: interventions undo")
    marked = list(entry["resolutions"])
    if marked:
        marked[-1] = {**marked[-1], "reopened_at": to_text(actor.at)}
    return {"resolved_at": None, "dismissed_at": None, "resolution": None, "resolutions": marked}


def assign(entry: Entry, actor: Actor, *, owner: str | None) -> EntryFields:
    if (entry.get("owner") or None) == owner:
        raise ConflictError(f"{entry['id']} is already assigned to {owner or 'nobody'}")
    return {"owner": owner}


def change(
    work: Transaction, action: str, before: Entry, fields: EntryFields, actor: Actor, max_size: int
) -> Entry:
    """Write the fields and the line of the journal into the transaction; the entry after it.
    Raises ArgumentError for one that could not be read again."""
    after = complete({**before, **fields, "version": before["version"] + 1})
    work.store(after, max_size)
    line: Transition = {"version_from": before["version"], "version_to": after["version"]}
    line["before"] = cast(EntryFields, {name: before.get(name) for name in fields})
    line["after"] = fields.copy()
    work.to_journal.append({**actor.line(action, before["id"]), **line})
    return after


def last_undoable(
    journal: Iterable[Transition], entry_of: Callable[[str], Entry | None]
) -> tuple[Transition, Entry] | None:
    """The latest transition that is not undone, and its entry. The journal is latest first."""
    undone: set[str] = set()
    for line in journal:
        if line.get("action") == "undo":
            undone.add(line.get("undoes", ""))
        elif "before" in line and "after" in line and line["transition_id"] not in undone:
            entry = entry_of(line["id"] or "")
            # An older version noted what was then not made.
            if entry is not None and line["version_to"] <= entry["version"]:
                return line, entry
    return None


def undo(entry: Entry, line: Transition) -> EntryFields:
    """Raises ConflictError when the fields were changed again since."""
    for name, value in line["after"].items():
        if entry.get(name) != value:
            what = f"{entry['id']} changed since the {line['action']} by {line['by']} ({name})"
            raise ConflictError(what, hint=f"look first: interventions show {entry['id']}")
    return line["before"].copy()


def _wake_at(until: datetime | None, duration: timedelta | None, now: datetime) -> str:
    argument, given = ("until", until) if duration is None else ("duration", duration)
    expect(argument, given, datetime if duration is None else timedelta)
    try:
        moment = until or now + (duration or timedelta())
        text = to_text(moment)
    except OverflowError as error:
        raise ArgumentError(f"{argument}: after the year 9999", argument=argument) from error
    except ValueError as error:
        raise ArgumentError(f"{argument}: {error}", argument=argument) from error
    if moment <= now:
        raise ArgumentError(f"{text} is not in the future", argument=argument)
    return text


def _must_be_open(entry: Entry, action: str) -> None:
    if is_open(entry):
        return
    state = "resolved" if entry["resolved_at"] else "dismissed"
    last = entry["resolutions"][-1] if entry["resolutions"] else {}
    who = f" by {last['by']}" if last.get("by") else ""
    note = f": {entry['resolution']}" if entry.get("resolution") else ""
    what = f"cannot {action} {entry['id']}: it is already {state}{who}{note}"
    raise ConflictError(what, hint=f"interventions reopen {entry['id']}")


def _closing(entry: Entry, actor: Actor, note: str, row: Resolution) -> EntryFields:
    """What every closing writes: `row` in the entry's history, and no snooze."""
    row = {**row, "at": to_text(actor.at), "by": actor.name, "note": note}
    awake: EntryFields = {"snoozed_until": None, "snoozed_until_occurrences": None}
    return {**awake, "resolution": note or None, "resolutions": [*entry["resolutions"], row]}


@cache
def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return "unknown"
