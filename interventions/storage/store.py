"""The queue's storage, narrow enough that a table of a database can stand in for the JSON file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from interventions.entry import Entry, Transition, closed_at, is_open
from interventions.settings import Limits, RetentionSettings
from interventions.storage.queue_file import LogLine, QueueState
from interventions.times import from_text


class AdmissionKind(StrEnum):
    ACCEPTED = "accepted"
    MERGED = "merged"
    COUNTED = "counted"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Admission:
    """What happened to a put; false only when the failure was dropped.

    `reason` is why it is no entry of its own: `snoozed`, `retried`, `delivered` (a second time),
    `session`, `error_type`, or for a drop `queue_full`, `session_escalations`, `lock_timeout`,
    `corrupt`, `storage`. `detail` says more in words.
    """

    kind: AdmissionKind
    intervention_id: str | None
    reason: str = ""
    detail: str = ""

    def __bool__(self) -> bool:
        return self.kind is not AdmissionKind.DROPPED

    @property
    def fields(self) -> dict[str, str | None]:
        """As a line of a log has them."""
        kind = {"admission": str(self.kind), "intervention_id": self.intervention_id}
        return {**kind, "reason": self.reason, "detail": self.detail}


class EntryFigures(NamedTuple):
    """The figures of an entry that may have left the queue; `closed_at` is empty while it is
    open."""

    hours_to_resolve: float | None
    regression: bool
    closed_at: str
    verified: bool


class FailureCount(NamedTuple):
    """Failures of one step of a window of time that are alike; `severity` is its rank."""

    step: int
    severity: int
    phase: str
    fingerprint: str
    admission: str
    failures: int


def figures_of(entry: Entry) -> EntryFigures:
    hours = None
    if resolved_at := entry["resolved_at"]:
        took = from_text(resolved_at) - from_text(entry["created_at"])
        hours = took.total_seconds() / 3600
    verified = bool(
        resolved_at and entry["resolutions"] and entry["resolutions"][-1].get("verified")
    )
    return EntryFigures(hours, bool(entry.get("regression_of")), closed_at(entry), verified)


def make_room(
    entries: tuple[Entry, ...], max_size: int, changed: Collection[str] = ()
) -> tuple[tuple[Entry, ...], list[Entry]]:
    """(entries that stay, entries for the archive): at most `max_size` stay, all open ones, and
    those with an id in `changed`."""
    excess = len(entries) - max_size
    if excess <= 0:
        return entries, []
    may_leave = (e for e in entries if not is_open(e) and e["id"] not in changed)
    closed = sorted(may_leave, key=closed_at)
    leaving = closed[:excess]
    gone = {entry["id"] for entry in leaving}
    return tuple(entry for entry in entries if entry["id"] not in gone), leaving


@dataclass
class Transaction:
    """What one holder of the lock reads and wants written.

    Leaving the `with` block without an exception writes the archive, the new state together with
    the lines of the journal and of the error log, and then these; what changed nothing writes
    nothing.
    """

    state: QueueState
    to_archive: list[Entry] = field(default_factory=list)
    to_journal: list[Transition] = field(default_factory=list)
    to_log: list[LogLine] = field(default_factory=list)
    # The archive is written first, and whoever is killed then leaves there what was not done: an
    # entry leaves the queue with a later change than its own.
    changed: dict[str, Entry] = field(default_factory=dict)

    def store(self, entry: Entry, max_size: int, *, admitted: str = "") -> None:
        """The entry in the place of the one with its id, or at the end, and counted by how it was
        admitted. Closed entries for which there is no room move to the archive. The caller has
        checked (`complete`) that it can be read again."""
        entries, name = self.state.entries, entry["id"]
        at = next((at for at, old in enumerate(entries) if old["id"] == name), len(entries))
        self.changed[name] = entry
        entries = (*entries[:at], entry, *entries[at + 1 :])
        entries, archived = make_room(entries, max_size, self.changed)
        counts = self.state.admitted
        if admitted:
            counts = {**counts, admitted: counts.get(admitted, 0) + 1}
        self.state = self.state._replace(entries=entries, admitted=counts)
        self.to_archive += archived


@dataclass(frozen=True)
class PutResult:
    """The failure as it is logged, what became of it, and the entry that has it if at hand.

    `event` is what people are notified of, empty if it is no news.
    """

    failure: Entry
    admission: Admission
    entry: Entry | None = None
    event: str = ""

    @classmethod
    def dropped(cls, failure: Entry, reason: str, detail: str) -> PutResult:
        return cls(failure, Admission(AdmissionKind.DROPPED, None, reason, detail))


Admit = Callable[[Transaction, Entry, Limits, "Store"], PutResult]


class Store(Protocol):
    """Raises StorageError and its kinds, and nothing else of its own."""

    def read(self) -> QueueState:
        """The last committed state; CorruptQueueError if it was lost. Takes no lock."""

    def stamp(self) -> object:
        """Cheap, and another one when `read` may answer something else."""

    def transaction(
        self, timeout_s: float, *, restoring: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Exclusive among all threads and processes; LockTimeoutError after `timeout_s`, and
        CorruptQueueError if the state was lost, but for who restores it."""

    def submit(self, failure: Entry, limits: Limits, timeout_s: float, admit: Admit) -> PutResult:
        """`admit` one failure in a transaction, perhaps together with those of other waiters, and
        write it into the error log."""

    def archived_one(self, intervention_id: str) -> Entry | None:
        """By its whole id. The archive has the closed entries that had to leave the queue."""

    def archived_ids(self, beginning: str) -> list[str]:
        """The ids that begin so, or whose random part does; not all of very many."""

    def archived_closed(self) -> Iterator[Entry]:
        """All of the archive, the latest closed first, each read when it is asked for."""

    def archived_resolved(self, names: Iterable[str], *, still: bool = False) -> Iterator[Entry]:
        """Those with one of these fingerprints (merged ones included) that were resolved at some
        time, or with `still` are; the latest archived first, each read when it is asked for."""

    def archived_figures(
        self, without: Collection[str], closed_since: str = ""
    ) -> list[EntryFigures]:
        """Of every archived entry but those with these ids, and those closed before."""

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        """Every transition, or those of one entry; the latest first."""

    def holder(self, failure_id: str) -> str | None:
        """The id of the entry that has a failure which the logs call dropped, as far as the logs,
        the journal and the archive know."""

    def prune(self, keep: RetentionSettings, line: Transition, timeout_s: float) -> int:
        """Let the archive go of what is not kept, and note it: how many."""
