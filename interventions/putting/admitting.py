"""One failure into an open transaction: the decision of `admission`, applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from interventions.closing import transitions
from interventions.closing.transitions import Actor
from interventions.entry import Entry, Transition, closed_at, fingerprints
from interventions.ids import new_id
from interventions.putting.admission import (
    ESCALATION,
    Admission,
    AdmissionKind,
    Decision,
    Limits,
    decide,
)
from interventions.putting.occurrences import count_onto
from interventions.storage.retention import make_room
from interventions.storage.state import QueueState
from interventions.storage.store import Outcome, Store, Transaction
from interventions.timestamps import from_text, to_text, utc_now


def admit(work: Transaction, failure: Entry, limits: Limits, store: Store) -> Outcome:
    return _apply(work, _with_unique_id(failure, work.state), limits, store, utc_now())


def admit_again(
    work: Transaction, failure: Entry, limits: Limits, store: Store, actor: Actor
) -> Outcome:
    """A failure from the emergency log: never twice, and nothing happens when there is no room."""
    now = utc_now()
    holder = _holder(work.state, store, failure["id"])
    if holder is not None:
        # Another drain was quicker, or one was killed before it could note what it did.
        work.to_journal.append(_drain_line(failure, holder, actor, now))
        admission = Admission(AdmissionKind.COUNTED, holder, "already_there")
        return Outcome(failure, admission, None, known=True)
    before = work.state
    outcome = _apply(work, failure, limits, store, now)
    if outcome.admission:
        holder = outcome.admission.intervention_id or ""
        work.to_journal_after.append(_drain_line(failure, holder, actor, now))
    else:
        work.state = before
        work.to_journal.clear()
    return outcome


def _apply(
    work: Transaction, failure: Entry, limits: Limits, store: Store, now: datetime
) -> Outcome:
    decision = decide(work.state.entries, failure, limits, now)
    if decision.closes is not None:
        _close_retried(work, decision.closes, failure, now)
    if decision.kind is AdmissionKind.DROPPED:
        work.state = _counted_drop(work.state, decision.reason)
        return Outcome(failure, _dropped(decision, limits), None, known=False)
    failure = _marked_as_regression(failure, work.state, store)
    entry = failure if decision.target is None else count_onto(decision.target, failure)
    entries, archived = make_room(with_entry(work.state.entries, entry), limits.max_size)
    work.to_archive += archived
    name = str(decision.kind)
    counts = {**work.state.admitted, name: work.state.admitted.get(name, 0) + 1}
    work.state = replace(work.state, entries=entries, admitted=counts)
    admission = Admission(decision.kind, entry["id"], decision.reason)
    return Outcome(failure, admission, entry, known=decision.known)


def with_entry(entries: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    """The entry in the place of the one with its id, or at the end."""
    for number, other in enumerate(entries):
        if other["id"] == entry["id"]:
            return (*entries[:number], entry, *entries[number + 1 :])
    return (*entries, entry)


def _with_unique_id(failure: Entry, state: QueueState) -> Entry:
    while any(entry["id"] == failure["id"] for entry in state.entries):
        failure = {**failure, "id": new_id(from_text(failure["created_at"]))}
    return failure


def _holder(state: QueueState, store: Store, failure_id: str) -> str | None:
    """The id of the entry that has this very failure, as itself or as a sample."""
    for line in store.journal():
        if line.get("action") == "drain" and line.get("failure_id") == failure_id:
            return str(line["id"])
    for entry in (*state.entries, *store.archived()):
        rows = (row.get("sample") or {} for row in entry["merged"])
        samples: Iterable[Mapping[str, Any]] = (entry, entry.get("latest_sample") or {}, *rows)
        if any(sample.get("id") == failure_id for sample in samples):
            return str(entry["id"])
    return None


def _marked_as_regression(failure: Entry, state: QueueState, store: Store) -> Entry:
    if failure["type"] == ESCALATION:
        return failure  # a question that is asked again is no bug that came back
    known = failure["fingerprint"]
    resolved = [e for e in state.entries if e["resolved_at"] and known in fingerprints(e)]
    if resolved:
        before: Entry | None = max(resolved, key=closed_at)
    else:
        # What was reopened is in the archive as it was before.
        before = store.last_resolved(known, {entry["id"] for entry in state.entries})
    if before is None:
        return failure
    return {**failure, "regression_of": before["id"], "regression_note": before["resolution"]}


def _close_retried(work: Transaction, retried: Entry, failure: Entry, now: datetime) -> None:
    """The retry got past the phase that had failed, which is what the entry was about."""
    note = f"a retry got past {retried['phase']}; the turn then failed in {failure['phase']}"
    actor = Actor.current(via="retry")
    outcome = f"failed in {failure['phase']}"
    fields = transitions.resolve(retried, note=note, actor=actor, now=now, verified=outcome)
    after = transitions.apply(retried, fields)
    work.state = replace(work.state, entries=with_entry(work.state.entries, after))
    work.to_journal.append(transitions.record("resolve", retried, after, fields, actor, now))


def _drain_line(failure: Entry, intervention_id: str, actor: Actor, now: datetime) -> Transition:
    return {
        "at": to_text(now),
        "action": "drain",
        "id": intervention_id,
        "failure_id": failure["id"],
        "by": actor.name,
        "via": actor.via,
        "host": actor.host,
    }


def _counted_drop(state: QueueState, reason: str) -> QueueState:
    return replace(state, dropped={**state.dropped, reason: state.dropped.get(reason, 0) + 1})


def _dropped(decision: Decision, limits: Limits) -> Admission:
    detail = f"{limits.max_size} entries are open"
    if decision.reason == "session_escalations":
        detail = f"{limits.max_escalations_per_session} escalations of this session are open"
    return Admission(AdmissionKind.DROPPED, None, decision.reason, detail)
