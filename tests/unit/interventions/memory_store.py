"""A store in memory: the second implementation against which the storage interface is proven."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from interventions.entry import Entry, Transition, complete, fingerprints, was_resolved
from interventions.errors import LockTimeoutError
from interventions.storage.store import Admit, Limits, PutResult, QueueState, Transaction


class MemoryStore:
    """Shared by the threads of one process; gone with it."""

    def __init__(self, state: QueueState | None = None) -> None:
        self._state = state or QueueState()
        self._archive: dict[str, Entry] = {}
        self._journal: list[Transition] = []
        self._lock = Lock()

    def read(self) -> QueueState:
        return self._state

    @contextmanager
    def transaction(self, timeout_s: float) -> Iterator[Transaction]:
        if not self._lock.acquire(timeout=timeout_s):
            raise LockTimeoutError(f"the queue was locked for longer than {timeout_s:g} s")
        try:
            work = Transaction(self._state)
            yield work
            self._journal += copy.deepcopy([*work.to_journal, *work.to_journal_after])
            for entry in work.to_archive:
                self._archive.pop(entry["id"], None)
                self._archive[entry["id"]] = copy.deepcopy(entry)
            self._state = QueueState(
                tuple(complete(entry) for entry in work.state.entries),
                dict(work.state.dropped),
                dict(work.state.admitted),
                dict(work.state.extra),
            )
        finally:
            self._lock.release()

    def submit(self, failure: Entry, limits: Limits, timeout_s: float, admit: Admit) -> PutResult:
        with self.transaction(timeout_s) as work:
            return admit(work, failure, limits, self)

    def archived(self) -> Iterator[Entry]:
        yield from list(self._archive.values())

    def archived_one(self, intervention_id: str) -> Entry | None:
        return self._archive.get(intervention_id)

    def archived_resolved(self, names: Iterable[str], limit: int | None = None) -> Iterator[Entry]:
        wanted = set(names)
        found = [
            entry
            for entry in self._archive.values()
            if wanted & fingerprints(entry) and was_resolved(entry)
        ]
        yield from found[-limit:] if limit else found

    def last_resolved(self, fingerprint: str, excluded: Collection[str] = ()) -> Entry | None:
        found = None
        for entry in self._archive.values():
            if entry["id"] in excluded:
                continue
            if entry["resolved_at"] and fingerprint in fingerprints(entry):
                found = entry
        return found

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        for line in list(self._journal):
            if intervention_id is None or line.get("id") == intervention_id:
                yield line
