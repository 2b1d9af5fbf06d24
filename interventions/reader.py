"""What a program can ask of the queue. Nothing here takes its lock or changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.entry import (
    Entry,
    Transition,
    closed_at,
    fingerprints,
    is_open,
    short_id,
    turns_needed,
)
from interventions.errors import AmbiguousIdError, NotFoundError, expect
from interventions.health import Health, health
from interventions.storage.history import History
from interventions.storage.state import QueueState
from interventions.storage.store import Limits, Store
from interventions.times import utc_now

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest


LAST = "last"


def find_anywhere(current: Iterable[Entry], store: Store, wanted: str) -> Entry:
    """In the queue and in the archive: by id, by any unique prefix of it or of its random part, or
    `last` for the newest of the queue. Raises NotFoundError or AmbiguousIdError."""
    expect("intervention_id", wanted, str)
    here = {entry["id"]: entry for entry in current}
    wanted = wanted.strip()
    if not wanted:
        raise NotFoundError("no id was given", hint="ids: interventions list")
    if wanted == LAST and here:
        return list(here.values())[-1]
    fits = {wanted} & here.keys() or {
        name for name in here if wanted in (name[: len(wanted)], short_id(name)[: len(wanted)])
    }
    if wanted not in here:
        # A whole id needs no look at others.
        whole = store.archived_one(wanted)
        if whole is not None:
            return whole
        fits |= set(store.archived_ids(wanted))
    if len(fits) > 1:
        candidates = sorted(fits)
        raise AmbiguousIdError(
            f"{wanted!r} fits {len(fits)} interventions: {', '.join(candidates[:10])}",
            candidates=candidates,
            hint="give more of the id",
        )
    found = [here.get(name) or store.archived_one(name) for name in fits]
    if not found or found[0] is None:
        raise NotFoundError(
            f"no intervention has an id that begins with {wanted!r}",
            hint="open ones: interventions list; closed ones: interventions history",
        )
    return found[0]


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
        self._logs = store if isinstance(store, History) else History(home)

    def is_full(self) -> bool:
        """Whether the next new failure would be dropped (`refuse_when_full` asks this)."""
        return self.open_count() >= self.limits.max_size

    def open_count(self) -> int:
        return sum(1 for entry in self.entries() if is_open(entry))

    def entries(self) -> tuple[Entry, ...]:
        """What is in the queue now: open entries and the latest closed ones."""
        return self.store.read().entries

    def turns_needed(self) -> set[int]:
        """The turns that a failure waits with, in an open entry or in the emergency log."""
        # The log first, from which `drain` moves failures into entries.
        return self._logs.waiting_turns() | turns_needed(self.entries())

    def history(self, limit: int | None = None) -> list[Entry]:
        """The closed entries, those of the archive included, the latest first."""
        return list(islice(self.closed(), limit))

    def closed(self) -> Iterator[Entry]:
        """`history`, each entry read when it is asked for."""
        entries = self.entries()
        here = {entry["id"] for entry in entries}
        latest = sorted((e for e in entries if not is_open(e)), key=closed_at, reverse=True)
        past = (entry for entry in self.store.archived_closed() if entry["id"] not in here)
        return merge(latest, past, key=closed_at, reverse=True)

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
        past = islice(self.store.archived_resolved(fingerprints(entry)), limit)
        others = {other["id"]: other for other in past} | current
        return similar(entry, others.values())

    def journal(self, intervention_id: str | None = None) -> list[Transition]:
        """Who did what when, oldest first."""
        return list(self.store.journal(intervention_id))[::-1]

    def health(self, state: QueueState | None = None, now: datetime | None = None) -> Health:
        """Of this state, by default the present one."""
        state = state or self.store.read()
        figures = self.store.archived_figures({entry["id"] for entry in state.entries})
        logged = self._logs.dropped_by_reason()
        return health(state, figures, logged, self.limits, now or utc_now())
