"""Finding an entry by what a person types: any unique prefix of its random part or of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from interventions.entry import Entry, closed_at, fingerprints, is_open, short_id
from interventions.errors import AmbiguousIdError, NotFoundError
from interventions.storage.state import QueueState
from interventions.storage.store import Store


def find_anywhere(current: Iterable[Entry], store: Store, wanted: str) -> Entry:
    """In the queue and in the archive; a whole id needs no look at all entries of the archive."""
    here = {entry["id"]: entry for entry in current}
    whole = here.get(wanted.strip()) or store.archived_one(wanted.strip())
    if whole is not None:
        return whole
    past = (entry for entry in store.archived() if entry["id"] not in here)
    return find(chain(here.values(), past), wanted)


def find(entries: Iterable[Entry], wanted: str) -> Entry:
    """Raises NotFoundError or AmbiguousIdError."""
    wanted = wanted.strip()
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


def closed_ones(current: Iterable[Entry], archived: Iterable[Entry]) -> list[Entry]:
    """Every closed entry, the latest first; what is in the queue is newer than in the archive."""
    here = {entry["id"]: entry for entry in current}
    past = (entry for entry in archived if entry["id"] not in here)
    return sorted(
        (entry for entry in (*past, *here.values()) if not is_open(entry)),
        key=closed_at,
        reverse=True,
    )


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


def everything(store: Store, state: QueueState) -> dict[str, Entry]:
    """Every entry there is by its id; what is in the queue is newer than the archive."""
    found = {entry["id"]: entry for entry in store.archived()}
    return found | {entry["id"]: entry for entry in state.entries}
