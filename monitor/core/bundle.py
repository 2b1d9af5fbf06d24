"""An exported bundle, or a copy of a queue file, to look at: nothing in it can be changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from interventions.closing.lookup import similar
from interventions.entry import Entry, Transition, complete, is_open
from interventions.errors import QueueError
from interventions.queue import InterventionQueue
from interventions.storage.queue_format import decode
from monitor.core.snapshot import Background, Snapshot
from monitor.core.source import Clock

_REASON = "an exported file"


class BundleSource:
    """Raises QueueError when the file is neither. It is read once."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.queue: InterventionQueue | None = None
        self.home = path.parent
        self.title = f"{path.name} (read-only)"
        self._clock = clock
        self._entries, self._similar, self._journal = _read(path)

    def mark(self) -> object:
        return None

    def read(self) -> Snapshot:
        return Snapshot(self._clock(), tuple(self._entries), read_only=_REASON, of_all_states=True)

    def history(self) -> list[Entry]:
        return [entry for entry in (*self._entries, *self._similar) if not is_open(entry)]

    def background(self, intervention_id: str) -> Background:
        journal = tuple(line for line in self._journal if line.get("id") == intervention_id)
        entry = next((e for e in self._entries if e["id"] == intervention_id), None)
        return Background(tuple(similar(entry, self._similar) if entry else ()), journal)


def _read(path: Path) -> tuple[list[Entry], list[Entry], list[Transition]]:
    """(what it is about, earlier ones that were alike, who did what)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise QueueError(f"cannot read {path}: {error.strerror}") from error
    try:
        document = json.loads(data)
        if isinstance(document, dict) and "intervention" in document:
            past = [complete(entry) for entry in document.get("similar") or []]
            journal = [line for line in document.get("journal") or [] if isinstance(line, dict)]
            return [complete(document["intervention"])], past, cast(list[Transition], journal)
        return list(decode(data)[0].entries), [], []
    except (ValueError, TypeError, RecursionError) as error:
        raise QueueError(
            f"{path} is no exported intervention: {error}",
            hint="make one with: interventions export ID -o FILE",
        ) from error
