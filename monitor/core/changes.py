"""Doing one thing to several entries: what was done, and what was refused and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from interventions.entry import Entry, is_open, names, state_of
from interventions.errors import ConflictError, QueueError, StorageError
from interventions.queue import InterventionQueue
from interventions.retry.contract import RetryFailedError
from interventions.secrets.redaction import redact_text
from interventions.view.plaintext import one_line

VIA = "monitor"
Change = Callable[[Entry], Entry]


class InputError(Exception):
    """What was typed cannot be used; `str` says why."""


@dataclass(frozen=True)
class Refused:
    """`passing`: the same may go well in a moment. `now` is the entry that somebody else made of
    it, if it is still open."""

    entry: Entry
    why: str
    passing: bool = False
    now: Entry | None = None


@dataclass(frozen=True)
class Outcome:
    """`done` are the entries as they are after the change; `left` were not tried; `remarks` are
    what else a person should know."""

    action: str
    done: tuple[Entry, ...] = ()
    refused: tuple[Refused, ...] = ()
    left: tuple[Entry, ...] = ()
    remarks: tuple[str, ...] = ()

    def told(self) -> str:
        """`resolved 2: a1b2c3, d4e5f6`"""
        return f"{self.action} {len(self.done)}: {_names(self.done)}"

    def why_not(self, most: int) -> list[str]:
        """A line for those refused for one reason, and one for those that were not tried."""
        alike: dict[str, list[Entry]] = {}
        for one in self.refused:
            alike.setdefault(one.why, []).append(one.entry)
        lines = [f"{_names(entries)}: {why}" for why, entries in list(alike.items())[:most]]
        if len(alike) > most:
            lines.append(f"and {sum(map(len, list(alike.values())[most:]))} more")
        if self.left:
            lines.append(f"not tried: {_names(self.left)}")
        return lines


def apply(
    action: str,
    targets: Sequence[Entry],
    change: Change,
    *,
    go_on: Callable[[int], bool] = lambda done: True,
) -> Outcome:
    """Each in turn; a refusal of one does not stop the others, unless it would be theirs too.

    `go_on` is asked before each, with how many were tried. A refusal is a QueueError, a
    RetryFailedError (which whatever a resumer raises has become) or an InputError; anything else
    is a mistake of the monitor, which ends it.
    """
    done: list[Entry] = []
    refused: list[Refused] = []
    for number, entry in enumerate(targets):
        if not go_on(number):
            return Outcome(action, tuple(done), tuple(refused), tuple(targets[number:]))
        try:
            done.append(change(entry))
        except StorageError as error:
            refused.append(Refused(entry, _why(error), passing=True))
            # Each of the others would wait as long for the same lock, or find the same full disk.
            return Outcome(action, tuple(done), tuple(refused), tuple(targets[number + 1 :]))
        except QueueError as error:
            refused.append(Refused(entry, _why(error)))
        except RetryFailedError as error:
            refused.append(Refused(entry, one_line(f"failed again: {redact_text(_again(error))}")))
        except InputError as error:
            refused.append(Refused(entry, one_line(str(error))))
    return Outcome(action, tuple(done), tuple(refused))


def _again(error: RetryFailedError) -> str:
    """The error now, and whether the fix did anything: in what it differs from the one before."""
    said = any(line.startswith("now: ") for line in error.difference)
    return "; ".join(error.difference if said else (str(error), *error.difference))


def _names(entries: Sequence[Entry]) -> str:
    return names(entry["id"] for entry in entries)


def look_again(queue: InterventionQueue, outcome: Outcome, moment: datetime) -> Outcome:
    """What became of those that were refused because somebody else was first."""
    return replace(outcome, refused=tuple(_as_it_is(queue, one, moment) for one in outcome.refused))


def _as_it_is(queue: InterventionQueue, refused: Refused, moment: datetime) -> Refused:
    try:
        now = queue.find(refused.entry["id"])
    except QueueError:
        return refused
    if now["version"] == refused.entry["version"]:
        return refused
    note = f": {now['resolution']}" if now.get("resolution") else ""
    why = one_line(f"{refused.why}; it is {state_of(now, moment)} now{note}")
    return replace(refused, why=why, now=now if is_open(now) else None)


def _why(error: QueueError) -> str:
    # A hint to look again names a command; here it has just been looked at.
    hint = f" ({error.hint})" if error.hint and not isinstance(error, ConflictError) else ""
    return one_line(f"{error}{hint}")


def undo(queue: InterventionQueue, outcome: Outcome) -> Outcome:
    """Take back what was done, unless somebody changed the entry since."""

    def back(entry: Entry) -> Entry:
        return queue.undo(entry["id"], expected_version=entry["version"], via=VIA)[1]

    return apply(f"undid: {outcome.action}", outcome.done, back)


def to_try_again(outcome: Outcome, undone: Outcome) -> Outcome | None:
    """What is still to be undone after an undo that was kept from it for a passing reason."""
    left = {one.entry["id"] for one in undone.refused if one.passing}
    left |= {entry["id"] for entry in undone.left}
    rest = tuple(entry for entry in outcome.done if entry["id"] in left)
    return replace(outcome, done=rest) if rest else None
