"""The state that screens and forms share, and changes of several entries at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from interventions.entry import Entry, short_ids
from interventions.errors import ConflictError, QueueError, StorageError
from interventions.plaintext import for_home, one_line
from interventions.queue import InterventionQueue
from interventions.retry.contract import StillOpenError
from monitor.core.source import Clock, Source

VIA = "monitor"
Change = Callable[[Entry], Entry]


@dataclass
class AppState:
    """What all screens and forms share. `changes` are those made from here that can be undone, the
    latest last; `look` is the file that keeps what this person has seen, None where that is not
    kept; `bell` whether it rings."""

    source: Source
    clock: Clock
    look: Path | None = None
    bell: bool = True
    changes: list[ChangeOutcome] = field(default_factory=list)
    undone_in_a_row: int = 0

    def went_back(self, change: ChangeOutcome, undone: ChangeOutcome) -> None:
        """`undone` took `change` back, so its entries are again what the changes before made of
        them, at a later version. What somebody else did in between stays a conflict."""
        now = {entry["id"]: entry["version"] for entry in undone.done}
        later = {e["id"]: now[e["id"]] - (e["version"] - 1) for e in change.done if e["id"] in now}
        for place, earlier in enumerate(self.changes):
            done = [entry.copy() for entry in earlier.done]
            for entry in done:
                entry["version"] += later.get(entry["id"], 0)
            self.changes[place] = replace(earlier, done=tuple(done))


class InputError(Exception):
    """What was typed cannot be used; `str` says why."""


@dataclass(frozen=True)
class Refusal:
    """`temporary`: the same may go well in a moment. `now` is the entry that somebody else made of
    it, if it is still open."""

    entry: Entry
    why: str
    temporary: bool = False
    now: Entry | None = None


@dataclass(frozen=True)
class ChangeOutcome:
    """`done` are the entries as they are after the change; `not_tried` come after a refusal that
    would be theirs too; `remarks` are what else a person should know."""

    action: str
    done: tuple[Entry, ...] = ()
    refused: tuple[Refusal, ...] = ()
    not_tried: tuple[Entry, ...] = ()
    remarks: tuple[str, ...] = ()
    can_be_undone: bool = False

    def __str__(self) -> str:
        """`resolved 2: a1b2c3, d4e5f6`"""
        return f"{self.action} {len(self.done)}: {_names(self.done)}"

    def problems(self, most: int, home: Path) -> list[str]:
        """A line for those refused for one reason, and one for those that were not tried; commands
        in them find this home, wherever they are typed."""
        by_reason: dict[str, list[Entry]] = {}
        for one in self.refused:
            by_reason.setdefault(one.why, []).append(one.entry)
        shown = list(by_reason.items())[:most]
        lines = [f"{_names(entries)}: {for_home(why, home)}" for why, entries in shown]
        if len(by_reason) > most:
            lines.append(f"and {sum(map(len, list(by_reason.values())[most:]))} more")
        if self.not_tried:
            lines.append(f"not tried: {_names(self.not_tried)}")
        return lines


def apply(
    action: str,
    targets: Sequence[Entry],
    change: Change,
    *,
    may_continue: Callable[[int], bool] = lambda tried: True,
) -> ChangeOutcome:
    """Each in turn; a refusal of one does not stop the others, unless it would be theirs too.

    `may_continue` is asked before each, with how many were tried. A refusal is a QueueError or
    an InputError; anything else is a mistake of the monitor, which ends it.
    """
    done: list[Entry] = []
    refused: list[Refusal] = []
    for tried, entry in enumerate(targets):
        if not may_continue(tried):
            break
        try:
            done.append(change(entry))
        except (QueueError, InputError) as error:
            temporary = isinstance(error, StorageError)
            refused.append(Refusal(entry, _why(error), temporary))
            if temporary:
                break  # each of the others would wait for the same lock, or find the same full disk
    not_tried = targets[len(done) + len(refused) :]
    return ChangeOutcome(action, tuple(done), tuple(refused), tuple(not_tried))


def _why(error: QueueError | InputError) -> str:
    if isinstance(error, StillOpenError) and error.result.failed_again:
        # Whether the fix did anything: in what it differs from the failure before.
        result = error.result
        has_new_error = any(line.startswith("now: ") for line in result.difference)
        said = [] if has_new_error else [result.message or ""]
        said += result.difference
        return f"failed again: {'; '.join(said)}"
    # A hint to look again names a command; here it has just been looked at.
    hint = "" if isinstance(error, ConflictError | InputError) else error.hint
    return one_line(f"{error} ({hint})" if hint else str(error))


def _names(entries: Sequence[Entry]) -> str:
    return short_ids(entry["id"] for entry in entries)


def undo(
    queue: InterventionQueue, outcome: ChangeOutcome
) -> tuple[ChangeOutcome, ChangeOutcome | None]:
    """Take back what was done, unless somebody changed the entry since: (what became of that, what
    is left to be undone because a temporary refusal kept it from it)."""

    def back(entry: Entry) -> Entry:
        return queue.undo(entry["id"], expected_version=entry["version"], via=VIA)[1]

    undone = apply(f"undid: {outcome.action}", outcome.done, back)
    left = {one.entry["id"] for one in undone.refused if one.temporary}
    left |= {entry["id"] for entry in undone.not_tried}
    rest = tuple(entry for entry in outcome.done if entry["id"] in left)
    return undone, replace(outcome, done=rest) if rest else None
