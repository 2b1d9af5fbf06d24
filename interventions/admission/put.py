"""One failure into an open transaction: the decision, applied."""

from __future__ import annotations

import logging
from itertools import islice

from interventions import transitions
from interventions.admission.decision import count_onto, decide
from interventions.admission.notifications import event_of
from interventions.entry import ESCALATION, Entry, Transition, closed_at, fingerprints, new_id
from interventions.settings import Limits
from interventions.storage.queue_file import QueueState
from interventions.storage.store import Admission, AdmissionKind, PutResult, Store, Transaction
from interventions.times import from_text, utc_now
from interventions.transitions import Actor


def admit(work: Transaction, failure: Entry, limits: Limits, store: Store) -> PutResult:
    known = store.knows(failure)
    if known or failure["id"] in [entry["id"] for entry in work.state.entries]:
        failure = _with_unique_id(failure, work.state, store)
    return _apply(work, failure, limits, store, known=known)


def admit_again(
    work: Transaction, failure: Entry, limits: Limits, store: Store, actor: Actor
) -> PutResult:
    """A failure from the emergency log: never twice, and nothing happens when there is no room."""
    holder = store.holder(failure["id"])
    if holder is not None:
        # Another drain was quicker, or it was put after its writer had given up waiting.
        work.to_journal.append(_drain_line(failure, holder, actor))
        admission = Admission(AdmissionKind.COUNTED, holder, "already_there")
        return PutResult(failure, admission)
    before, journalled, archived = work.state, len(work.to_journal), len(work.to_archive)
    outcome = _apply(work, failure, limits, store, known=store.knows(failure))
    if outcome.admission:
        holder = outcome.admission.intervention_id or ""
        work.to_journal.append(_drain_line(failure, holder, actor))
    else:
        work.state = before
        del work.to_journal[journalled:], work.to_archive[archived:]
    return outcome


def _apply(
    work: Transaction, failure: Entry, limits: Limits, store: Store, *, known: bool
) -> PutResult:
    before = work.state.entries
    decision = decide(before, failure, limits, utc_now())
    if decision.closes is not None:
        # The retry got past the phase that had failed, which is what the entry was about.
        solved, actor = decision.closes, Actor.current(via="retry")
        ended = f"failed in {failure['phase']}"
        note = f"a retry got past {solved['phase']}; the turn then {ended}"
        fields = transitions.resolve(solved, actor, note=note, verified=ended)
        transitions.change(work, "resolve", solved, fields, actor, limits.max_size)
    if decision.kind is AdmissionKind.DROPPED:
        dropped = work.state.dropped
        counts = {**dropped, decision.reason: dropped.get(decision.reason, 0) + 1}
        work.state = work.state._replace(dropped=counts)
        return PutResult.dropped(failure, decision.reason, decision.detail)
    failure = _marked_as_regression(failure, work.state, store, known=known)
    entry = failure if decision.target is None else count_onto(decision.target, failure)
    work.store(entry, limits.max_size, admitted=str(decision.kind))
    admission = Admission(decision.kind, entry["id"], decision.reason)
    event = event_of(failure, admission, entry, before)
    return PutResult(failure, admission, entry, event)


def _with_unique_id(failure: Entry, state: QueueState, store: Store) -> Entry:
    """An id is one entry's for good: a caller may give one that the archive has."""
    taken = [entry["id"] for entry in state.entries]
    while failure["id"] in taken or store.archived_one(failure["id"]) is not None:
        failure = {**failure, "id": new_id(from_text(failure["created_at"]))}
    return failure


def _marked_as_regression(failure: Entry, state: QueueState, store: Store, *, known: bool) -> Entry:
    if failure["type"] == ESCALATION:
        return failure  # a question asked again is no bug that came back
    name = failure["fingerprint"]
    resolved = [e for e in state.entries if e["resolved_at"] and name in fingerprints(e)]
    if known and not resolved:
        # What was reopened is in the archive as it was before.
        here = {entry["id"] for entry in state.entries}
        past = store.archived_resolved([name], still=True)
        resolved = list(islice((entry for entry in past if entry["id"] not in here), 1))
    if not resolved:
        return failure
    before = max(resolved, key=closed_at)
    return {**failure, "regression_of": before["id"], "regression_note": before["resolution"]}


def _drain_line(failure: Entry, intervention_id: str, actor: Actor) -> Transition:
    return {**actor.line("drain", intervention_id), "failure_id": failure["id"]}


logger = logging.getLogger("interventions")
_LOGGED = ("error_type", "error_message", "session_id", "turn_id", "request_id", "status_code")


def log_admission(failure: Entry, admission: Admission, limits: Limits) -> None:
    level, text = logging.INFO, f"intervention {admission.kind}"
    if admission.reason == "queue_full":
        level = logging.CRITICAL
        text = f"INTERVENTION QUEUE FULL ({limits.max_size}). Dropping: {failure['type']}"
    elif not admission:
        level = logging.CRITICAL
        text = f"intervention not queued ({admission.reason}): {admission.detail}"
    elif admission.reason == "session":
        level = logging.WARNING
        text = f"Session {failure['session_id']} hit intervention limit ({limits.max_per_session})"
    elif admission.reason == "error_type":
        level = logging.WARNING
        text = f"Error type {failure['error_type']} hit limit ({limits.max_per_error_type})"
    if logger.isEnabledFor(level):
        at = {"service": "interventions", "component": failure["phase"], "operation": "put"}
        known = {name: failure.get(name) for name in _LOGGED}
        kind = {"intervention_id": admission.intervention_id, "admission": str(admission.kind)}
        logger.log(level, "%s", text, extra={**at, **known, **kind})
