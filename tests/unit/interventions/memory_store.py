"""A store in memory: the second implementation against which the storage interface is proven."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from interventions.entry import (
    Entry,
    Transition,
    closed_at,
    complete,
    fingerprints,
    short_id,
    was_resolved,
)
from interventions.errors import LockTimeoutError
from interventions.settings import Limits
from interventions.storage.file_history import FileHistory
from interventions.storage.queue_file import QueueState
from interventions.storage.store import (
    Admit,
    ClosedFigures,
    ParseEntry,
    PutResult,
    Transaction,
    figures_of,
    parse_entry,
)


class MemoryStore(FileHistory):
    """Shared by the threads of one process; gone with it. What was dropped the logs of the home
    say."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._state = QueueState()
        self._archived: dict[str, Entry] = {}
        self._noted: list[Transition] = []
        self._lock = Lock()

    def read(self) -> QueueState:
        return self._state

    @contextmanager
    def transaction(self, timeout_s: float, *, restoring: bool = False) -> Iterator[Transaction]:
        if not self._lock.acquire(timeout=timeout_s):
            raise LockTimeoutError(f"the queue was locked for longer than {timeout_s:g} s")
        try:
            work = Transaction(self._state)
            yield work
            self._noted += copy.deepcopy(work.to_journal)
            for entry in work.to_archive:
                self._archived.pop(entry["id"], None)
                self._archived[entry["id"]] = copy.deepcopy(entry)
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

    def knows(self, failure: Entry) -> bool:
        return True

    def archived_one(self, intervention_id: str) -> Entry | None:
        return self._archived.get(intervention_id)

    def archived_ids(self, beginning: str) -> list[str]:
        names = sorted(self._archived)
        return [n for n in names if n.startswith(beginning) or short_id(n).startswith(beginning)]

    def archived_closed(self, parse: ParseEntry = parse_entry) -> Iterator[Entry]:
        yield from sorted(self._archived.values(), key=closed_at, reverse=True)

    def archived_resolved(self, names: Iterable[str], *, still: bool = False) -> Iterator[Entry]:
        wanted = set(names)
        for entry in reversed(self._archived.values()):
            if wanted & fingerprints(entry) and (
                entry["resolved_at"] if still else was_resolved(entry)
            ):
                yield entry

    def archived_figures(self, without: Collection[str], closed_since: str = "") -> ClosedFigures:
        found = (entry for name, entry in self._archived.items() if name not in without)
        return figures_of([entry for entry in found if closed_at(entry) >= closed_since])

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        for line in reversed(self._noted):
            if intervention_id is None or line.get("id") == intervention_id:
                yield line

    def holder(self, failure_id: str) -> str | None:
        found = (line["id"] for line in self._noted if line.get("failure_id") == failure_id)
        return next(found, None)
