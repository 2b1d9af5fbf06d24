"""What a program can ask of the queue. Nothing here takes its lock or changes anything."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.entry import Entry, Transition, closed_at, fingerprints, is_open, short_id
from interventions.errors import AmbiguousIdError, NotFoundError
from interventions.health import Health, figures_of, health
from interventions.storage.error_log import DroppedCounts
from interventions.storage.store import Limits, Store
from interventions.times import utc_now
from interventions.transitions import happened

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest


LAST = "last"


def find_anywhere(current: Iterable[Entry], store: Store, wanted: str) -> Entry:
    """In the queue and in the archive: by id, by any unique prefix of it or of its random part, or
    `last` for the newest of the queue. Raises NotFoundError or AmbiguousIdError."""
    here = {entry["id"]: entry for entry in current}
    wanted = wanted.strip()
    if wanted == LAST and here:
        return list(here.values())[-1]
    # A whole id needs no look at all entries of the archive.
    whole = here.get(wanted) or store.archived_one(wanted)
    if whole is not None:
        return whole
    past = (entry for entry in store.archived() if entry["id"] not in here)
    return find(chain(here.values(), past), wanted)


def find(entries: Iterable[Entry], wanted: str) -> Entry:
    """Raises NotFoundError or AmbiguousIdError."""
    if not wanted:
        raise NotFoundError("no id was given", hint="ids: interventions list")
    fits: dict[str, Entry] = {}
    for entry in entries:
        if entry["id"] == wanted:
            return entry
        if entry["id"].startswith(wanted) or short_id(entry["id"]).startswith(wanted):
            fits.setdefault(entry["id"], entry)
    if len(fits) > 1:
        candidates = sorted(fits)
        raise AmbiguousIdError(
            f"{wanted!r} fits {len(fits)} interventions: {', '.join(candidates[:10])}",
            candidates=candidates,
            hint="give more of the id",
        )
    if not fits:
        raise NotFoundError(
            f"no intervention has an id that begins with {wanted!r}",
            hint="open ones: interventions list; closed ones: interventions history",
        )
    return next(iter(fits.values()))


def all_entries(current: Iterable[Entry], archived: Iterable[Entry]) -> dict[str, Entry]:
    """Every entry there is by its id; what is in the queue is newer than the archive."""
    found = {entry["id"]: entry for entry in archived}
    return found | {entry["id"]: entry for entry in current}


def closed_entries(current: Iterable[Entry], archived: Iterable[Entry]) -> list[Entry]:
    """Every closed entry, the latest first."""
    closed = (e for e in all_entries(current, archived).values() if not is_open(e))
    return sorted(closed, key=closed_at, reverse=True)


def similar(entry: Entry, others: Iterable[Entry]) -> list[Entry]:
    """Those resolved before whose fingerprint is one of this entry's, the latest first.

    An entry that was resolved and reopened is its own past, and is among them.
    """
    wanted = fingerprints(entry)
    past = [
        other
        for other in others
        if wanted & fingerprints(other)
        and any(row.get("kind") == "resolved" for row in other["resolutions"])
        and (other["id"] != entry["id"] or is_open(entry))
    ]
    return sorted(past, key=lambda other: str(other["resolutions"][-1].get("at")), reverse=True)


class QueueReader:
    """Every method raises StorageError if the storage cannot be read."""

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
        return closed_entries(self.entries(), self.store.archived())

    def find(self, intervention_id: str) -> Entry:
        """By id or unique prefix, in the queue and in the archive.

        Raises NotFoundError or AmbiguousIdError.
        """
        return find_anywhere(self.entries(), self.store, intervention_id)

    def get(self, intervention_id: str) -> InterventionRequest:
        """`find`, as a request."""
        from interventions.admission.request import InterventionRequest

        return InterventionRequest.model_validate(self.find(intervention_id))

    def similar(self, intervention_id: str, *, limit: int | None = None) -> list[Entry]:
        """Entries resolved before with one of this entry's fingerprints, as `similar` has them.
        `limit` is how many records of the archive are looked at."""
        current = {entry["id"]: entry for entry in self.entries()}
        entry = find_anywhere(current.values(), self.store, intervention_id)
        past = self.store.archived_resolved(fingerprints(entry), limit)
        others = {other["id"]: other for other in past} | current
        return similar(entry, others.values())

    def journal(self, intervention_id: str | None = None) -> list[Transition]:
        """Who did what when, oldest first."""
        # In this order: what is written between the two must not look as if it had failed.
        lines = list(self.store.journal(intervention_id))
        current = self.entries()
        if intervention_id is None:
            return happened(lines, all_entries(current, self.store.archived()))
        here = {entry["id"]: entry for entry in current}
        entry = here.get(intervention_id) or self.store.archived_one(intervention_id)
        return happened(lines, {intervention_id: entry} if entry else {})

    def health(self) -> Health:
        archived = {entry["id"]: figures_of(entry) for entry in self.store.archived()}
        logged = DroppedCounts(self.home).by_reason()
        return health(self.store.read(), archived, logged, self.limits, utc_now())
