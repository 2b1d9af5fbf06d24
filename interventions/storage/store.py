"""The queue's storage, narrow enough that a table of a database can stand in for the JSON file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from interventions.entry import Entry, Transition
from interventions.putting.admission import Admission, AdmissionKind, Limits
from interventions.storage.state import QueueState


@dataclass
class Transaction:
    """What one holder of the lock reads and wants written.

    Leaving the `with` block without an exception writes, in this order, the journal, the archive,
    the new state and what the journal says after it; a state left as it was is not written.
    """

    state: QueueState
    to_archive: list[Entry] = field(default_factory=list)
    to_journal: list[Transition] = field(default_factory=list)
    to_journal_after: list[Transition] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """A put: the failure as it is logged, what became of it, the entry that has it if at hand.

    `known` says that the same failure was open before.
    """

    failure: Entry
    admission: Admission
    entry: Entry | None
    known: bool

    @classmethod
    def dropped(cls, failure: Entry, reason: str, detail: str) -> Outcome:
        return cls(failure, Admission(AdmissionKind.DROPPED, None, reason, detail), None, False)


class Store(Protocol):
    """Raises StorageError and its kinds, and nothing else of its own."""

    def read(self) -> QueueState:
        """The last committed state. Takes no lock."""
        ...

    def transaction(self, timeout_s: float) -> AbstractContextManager[Transaction]:
        """Exclusive among all threads and processes; LockTimeoutError after `timeout_s`."""
        ...

    def submit(self, failure: Entry, limits: Limits, timeout_s: float) -> Outcome:
        """Admit one failure in a transaction, perhaps together with those of other waiters."""
        ...

    def archived(self) -> Iterator[Entry]:
        """Closed entries that had to leave the queue, oldest first, each id once."""
        ...

    def archived_one(self, intervention_id: str) -> Entry | None:
        """By its whole id, without a look at the others."""
        ...

    def archived_resolved(self, names: Iterable[str], limit: int | None = None) -> Iterator[Entry]:
        """Those of the archive with one of these fingerprints that were resolved at some time; with
        `limit` those of the latest records alone."""
        ...

    def last_resolved(self, fingerprint: str, but_not: Collection[str] = ()) -> Entry | None:
        """The latest resolved entry of the archive with this fingerprint (merged ones included).

        `but_not` are ids that came back from the archive.
        """
        ...

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        """Every transition, or those of one entry, oldest first."""
        ...
