"""The queue as a program uses it: put failures, close them, and read them (`queue_reader.py`).

Every change is one transaction of the storage; what changes is decided by pure functions
(`admission`, `occurrences`, `transitions`, `retention`).
"""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.closing import transitions
from interventions.closing.changing import Changes
from interventions.closing.transitions import Actor
from interventions.entry import Entry, Transition
from interventions.errors import StorageError
from interventions.home import find_home
from interventions.putting.admission import Admission, Limits
from interventions.putting.admitting import admit_again
from interventions.putting.errorlog import log_emergency, log_failure
from interventions.putting.notifications import notify
from interventions.putting.prepare import FOREIGN, MAX_MESSAGE, Prepared, prepare, prepare_anything
from interventions.putting.putlog import log_admission
from interventions.queue_reader import QueueReader
from interventions.secrets.redaction import redact_text
from interventions.storage.store import Outcome, Store

if TYPE_CHECKING:
    from interventions.request import InterventionRequest


class InterventionQueue(QueueReader):
    """`put` never raises for the queue's own trouble; every other method does (StorageError).

    `home` is the folder that holds `shared_state/` and `logs/`; without it the nearest one is
    found. `lock_timeout_s` is how long one call waits for others. `store` replaces the JSON file.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        max_size: int = 50,
        max_per_session: int = 5,
        max_per_error_type: int = 10,
        max_escalations_per_session: int = 20,
        lock_timeout_s: float = 5.0,
        store: Store | None = None,
    ) -> None:
        place = find_home(home)
        limits = Limits(max_size, max_per_session, max_per_error_type, max_escalations_per_session)
        super().__init__(place, limits, store if store is not None else _file_store(place))
        self.lock_timeout_s = lock_timeout_s

    def put(self, request: InterventionRequest | Prepared) -> Admission:
        """Admit one failure. What cannot be stored goes to the emergency log, else to stderr."""
        failure = self._prepared(request)
        try:
            outcome = self.store.submit(failure, self.limits, self.lock_timeout_s)
        except StorageError as error:
            outcome = Outcome.dropped(failure, error.reason, str(error))
        except Exception as error:  # noqa: BLE001 - the caller is failing already; its error must win
            outcome = Outcome.dropped(failure, "internal", f"{type(error).__name__}: {error}")
        failure, admission = outcome.failure, outcome.admission
        log_failure(self.home, failure, admission)
        if not admission:
            log_emergency(self.home, failure, admission)
        log_admission(failure, admission, self.limits)
        notify(self.home, failure, admission, outcome.entry, known=outcome.known)
        return admission

    def put_back(self, failure: Entry, *, by: str | None = None, via: str = "library") -> Admission:
        """Put what is already in the emergency log; a failure that still finds no room stays there.

        Raises StorageError. Nothing is logged a second time, and nothing is put twice.
        """
        actor = Actor.current(by=by, via=via)
        with self.store.transaction(self.lock_timeout_s) as work:
            return admit_again(work, failure, self.limits, self.store, actor).admission

    def _prepared(self, request: InterventionRequest | Prepared) -> Entry:
        if isinstance(request, Prepared):
            return request.entry
        try:
            return prepare(request, self.home).entry
        except FOREIGN as error:
            return prepare_anything(request, error)

    def resolve(
        self,
        intervention_id: str,
        note: str,
        *,
        expected_version: int | None = None,
        by: str | None = None,
        via: str = "library",
        verified: str | None = None,
    ) -> Entry:
        """Close it as solved. ConflictError when it is closed or is not `expected_version`.

        `verified` is what became of the turn that was resumed and got past the failed phase.
        """
        actor = Actor.current(by=by, via=via)
        clean = _note(note, needed=True)
        return self._changes.one(
            "resolve",
            intervention_id,
            lambda entry, now: transitions.resolve(
                entry, note=clean, actor=actor, now=now, verified=verified
            ),
            actor,
            expected_version,
        )

    def dismiss(
        self,
        intervention_id: str,
        note: str = "",
        *,
        expected_version: int | None = None,
        by: str | None = None,
        via: str = "library",
    ) -> Entry:
        """Close it as not worth fixing; it never counts as solved."""
        actor = Actor.current(by=by, via=via)
        clean = _note(note, needed=False)
        return self._changes.one(
            "dismiss",
            intervention_id,
            lambda entry, now: transitions.dismiss(entry, note=clean, actor=actor, now=now),
            actor,
            expected_version,
        )

    def supersede(
        self,
        turn_id: int,
        why: str,
        *,
        keep: Container[str] = (),
        by: str | None = None,
        via: str = "library",
    ) -> list[Entry]:
        """Mark the open entries of a turn, and those that only count it, which nobody needs to
        mend for its sake any more; but for those with an id in `keep`, which others need."""
        actor = Actor.current(by=by, via=via)
        return self._changes.supersede(turn_id, redact_text(why, MAX_MESSAGE), actor, keep=keep)

    def snooze(
        self,
        intervention_id: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        until_n_more: int | None = None,
        expected_version: int | None = None,
        by: str | None = None,
        via: str = "library",
    ) -> Entry:
        """Exactly one of the three. It stays open; more of the same are counted on it."""
        if until is not None and until.tzinfo is None:
            raise ValueError(f"{until.isoformat()} has no time zone")
        actor = Actor.current(by=by, via=via)
        return self._changes.one(
            "snooze",
            intervention_id,
            lambda entry, now: transitions.snooze(
                entry,
                until=_after(now, duration) if duration is not None else until,
                until_n_more=until_n_more,
                now=now,
            ),
            actor,
            expected_version,
        )

    def reopen(
        self,
        intervention_id: str,
        *,
        expected_version: int | None = None,
        by: str | None = None,
        via: str = "library",
    ) -> Entry:
        """Raises ConflictError when it is open, LimitError when it would pass a limit."""
        actor = Actor.current(by=by, via=via)
        return self._changes.one(
            "reopen",
            intervention_id,
            lambda entry, now: transitions.reopen(entry, now=now),
            actor,
            expected_version,
        )

    def assign(
        self,
        intervention_id: str,
        owner: str | None,
        *,
        expected_version: int | None = None,
        by: str | None = None,
        via: str = "library",
    ) -> Entry:
        """`owner=None` takes it from whoever has it."""
        actor = Actor.current(by=by, via=via)
        name = redact_text(owner, 100) if owner else None
        return self._changes.one(
            "assign",
            intervention_id,
            lambda entry, now: transitions.assign(entry, owner=name),
            actor,
            expected_version,
        )

    def undo(
        self,
        intervention_id: str | None = None,
        *,
        expected_version: int | None = None,
        by: str | None = None,
        via: str = "library",
    ) -> tuple[Transition, Entry]:
        """Take back the last transition, of this entry or of all: (what was undone, the entry now).

        Raises NotFoundError when there is none, ConflictError when the entry changed since or is
        not `expected_version`.
        """
        return self._changes.undo(intervention_id, Actor.current(by=by, via=via), expected_version)

    @property
    def _changes(self) -> Changes:
        return Changes(self.store, self.limits, self.lock_timeout_s)


def _file_store(home: Path) -> Store:
    from interventions.storage.file_store import FileStore

    return FileStore(home)


def _after(now: datetime, duration: timedelta) -> datetime:
    try:
        return now + duration
    except OverflowError as error:
        raise ValueError(f"{duration.days} days from now is after the year 9999") from error


def _note(note: str, *, needed: bool) -> str:
    clean = redact_text(note.strip(), MAX_MESSAGE)
    if needed and not clean:
        raise ValueError("a resolution needs a note")
    return clean
