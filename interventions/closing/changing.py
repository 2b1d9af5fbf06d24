"""Closing, snoozing and the rest as transactions: compare, apply, keep the limits, journal."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from datetime import datetime

from interventions.closing import lookup, transitions
from interventions.closing.transitions import Actor
from interventions.entry import Entry, EntryFields, Transition, is_about, is_open
from interventions.errors import ConflictError, LimitError, NotFoundError
from interventions.putting.admission import Limits, limit_in_the_way
from interventions.putting.admitting import with_entry
from interventions.storage.retention import make_room
from interventions.storage.store import Store, Transaction
from interventions.timestamps import utc_now


class Changes:
    """Every method is one transaction of the store; StorageError if it cannot be had in time."""

    def __init__(self, store: Store, limits: Limits, lock_timeout_s: float) -> None:
        self._store = store
        self._limits = limits
        self._lock_timeout_s = lock_timeout_s

    def one(
        self,
        action: str,
        intervention_id: str,
        fields_of: Callable[[Entry, datetime], EntryFields],
        actor: Actor,
        expected_version: int | None,
    ) -> Entry:
        """The entry after it; one that is not `expected_version` is left alone (ConflictError)."""
        now = utc_now()
        with self._store.transaction(self._lock_timeout_s) as work:
            before = lookup.find_anywhere(work.state.entries, self._store, intervention_id)
            if expected_version is not None and before["version"] != expected_version:
                raise self._changed_meanwhile(before, expected_version)
            return self._write(work, action, before, fields_of(before, now), actor, now)

    def supersede(
        self, turn_id: int, why: str, actor: Actor, *, keep: Container[str]
    ) -> list[Entry]:
        """The open entries that are about the turn, marked, but for those in `keep`."""
        now = utc_now()
        with self._store.transaction(self._lock_timeout_s) as work:
            mine = [
                entry
                for entry in work.state.entries
                if is_open(entry) and is_about(entry, turn_id) and entry["id"] not in keep
            ]
            return [
                self._write(
                    work,
                    "supersede",
                    entry,
                    transitions.supersede(entry, why=why, now=now),
                    actor,
                    now,
                )
                for entry in mine
                if entry.get("superseded") != why
            ]

    def undo(
        self, intervention_id: str | None, actor: Actor, expected_version: int | None
    ) -> tuple[Transition, Entry]:
        """Take back the last transition, of this entry or of all."""
        now = utc_now()
        with self._store.transaction(self._lock_timeout_s) as work:
            everything = lookup.everything(self._store, work.state)
            wanted = (
                lookup.find(everything.values(), intervention_id)["id"] if intervention_id else None
            )
            found = transitions.last_undoable(self._store.journal(), everything, wanted)
            if found is None:
                raise NotFoundError(
                    "there is nothing to undo", hint="history: interventions history"
                )
            line, before = found
            if expected_version is not None and before["version"] != expected_version:
                raise self._changed_meanwhile(before, expected_version)
            after = self._write(work, "undo", before, transitions.undo(before, line), actor, now)
            work.to_journal[-1]["undoes"] = line["transition_id"]
        return line, after

    def _write(
        self,
        work: Transaction,
        action: str,
        before: Entry,
        fields: EntryFields,
        actor: Actor,
        now: datetime,
    ) -> Entry:
        after = transitions.apply(before, fields)
        if is_open(after) and not is_open(before):
            obstacle = limit_in_the_way(work.state.entries, after, self._limits)
            if obstacle:
                raise LimitError(
                    f"cannot {action} {after['id']}: {obstacle}", hint="resolve others first"
                )
        entries, archived = make_room(with_entry(work.state.entries, after), self._limits.max_size)
        work.state = replace(work.state, entries=entries)
        work.to_archive += archived
        work.to_journal.append(transitions.record(action, before, after, fields, actor, now))
        return after

    def _changed_meanwhile(self, entry: Entry, expected_version: int) -> ConflictError:
        lines = transitions.happened(list(self._store.journal(entry["id"])), {entry["id"]: entry})
        last = f": {lines[-1]['action']} by {lines[-1]['by']} at {lines[-1]['at']}" if lines else ""
        return ConflictError(
            f"{entry['id']} is version {entry['version']}, not {expected_version}{last}",
            hint=f"look again: interventions show {entry['id']}",
        )
