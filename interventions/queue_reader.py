"""What a program can ask of the queue. Nothing here takes its lock or changes anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from interventions.closing import lookup, transitions
from interventions.entry import Entry, Transition, fingerprints, is_open
from interventions.putting.admission import Limits
from interventions.putting.errorlog import Dropped
from interventions.storage.store import Store
from interventions.timestamps import utc_now
from interventions.upkeep.health import Health, health, past

if TYPE_CHECKING:
    from interventions.request import InterventionRequest


class QueueReader:
    """Raises StorageError for the storage's own trouble."""

    def __init__(self, home: Path, limits: Limits, store: Store) -> None:
        self.home = home
        self.limits = limits
        self.store = store

    def is_full(self) -> bool:
        """Whether the next new failure would be dropped (`refuse_when_full` asks this)."""
        return self.open_count() >= self.limits.max_size

    def open_count(self) -> int:
        return sum(1 for entry in self.entries() if is_open(entry))

    def entries(self) -> tuple[Entry, ...]:
        """What is in the queue now: open entries and the latest closed ones."""
        return self.store.read().entries

    def history(self) -> list[Entry]:
        """Every closed entry, those of the archive included, the latest first."""
        return lookup.closed_ones(self.entries(), self.store.archived())

    def find(self, intervention_id: str) -> Entry:
        """By id or unique prefix, in the queue and in the archive.

        Raises NotFoundError or AmbiguousIdError.
        """
        return lookup.find_anywhere(self.entries(), self.store, intervention_id)

    def get(self, intervention_id: str) -> InterventionRequest:
        """`find`, as a request."""
        from interventions.request import InterventionRequest

        return InterventionRequest.model_validate(self.find(intervention_id))

    def similar(self, intervention_id: str, *, limit: int | None = None) -> list[Entry]:
        """Entries resolved before whose fingerprint is one of this entry's, the latest first.

        An entry that was resolved and reopened is its own past, and is among them. `limit` is how
        many records of the archive are looked at.
        """
        current = {entry["id"]: entry for entry in self.entries()}
        entry = lookup.find_anywhere(current.values(), self.store, intervention_id)
        past = self.store.archived_resolved(fingerprints(entry), limit)
        others = {other["id"]: other for other in past} | current
        return lookup.similar(entry, others.values())

    def journal(self, intervention_id: str | None = None) -> list[Transition]:
        """Who did what when, oldest first."""
        # In this order: what is written between the two must not look as if it had failed.
        lines = list(self.store.journal(intervention_id))
        state = self.store.read()
        if intervention_id is None:
            return transitions.happened(lines, lookup.everything(self.store, state))
        here = {entry["id"]: entry for entry in state.entries}
        entry = here.get(intervention_id) or self.store.archived_one(intervention_id)
        return transitions.happened(lines, {intervention_id: entry} if entry else {})

    def health(self) -> Health:
        archived = {entry["id"]: past(entry) for entry in self.store.archived()}
        logged = Dropped(self.home).by_reason()
        return health(self.store.read(), archived, logged, self.limits, utc_now())
