"""Finding an entry by what a person types: any unique prefix of its random part or of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from interventions.entry import Entry, short_id
from interventions.errors import AmbiguousIdError, NotFoundError
from interventions.store import Store


def find_anywhere(current: Iterable[Entry], store: Store, wanted: str) -> Entry:
    """In the queue and in the archive; a whole id of the queue needs no look at the archive."""
    here = {entry["id"]: entry for entry in current}
    if wanted.strip() in here:
        return here[wanted.strip()]
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
