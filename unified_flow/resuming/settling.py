"""Closing the intervention whose retry got past the phase that it is about."""

from __future__ import annotations

from interventions import InterventionQueue
from interventions.entry import Entry, is_open
from interventions.errors import ConflictError, QueueError
from interventions.redaction import redact_text
from unified_flow.turn import Turn


def own_intervention(
    turn: Turn, queue: InterventionQueue, named: str | None
) -> tuple[str, str] | None:
    """(id, phase) of the open intervention that the turn's failure is; None if there is none.

    One that only counts this failure is about another turn, and is not closed or counted here.
    """
    failed = turn.failure.intervention_id if turn.failure else None
    before = turn.retry.intervention_id if turn.retry else None
    wanted = named or failed or before
    try:
        entry = queue.find(wanted) if wanted is not None else _put_before_it_died(turn, queue)
    except QueueError:
        return None  # the queue's own trouble is no reason to leave the turn where it is
    if entry is None or not _about(entry, turn):
        return None
    if turn.failure is not None and turn.failure.phase != entry["phase"]:
        return None
    return entry["id"], entry["phase"]


def _about(entry: Entry, turn: Turn) -> bool:
    """The number alone may be another turn's, whose folder somebody has removed."""
    known_as = (None, "", turn.request_id, redact_text(turn.request_id))
    return (
        is_open(entry) and entry["turn_id"] == turn.turn_id and entry.get("request_id") in known_as
    )


def _put_before_it_died(turn: Turn, queue: InterventionQueue) -> Entry | None:
    """The process may die when a failure is in the queue and not yet in the journal."""
    return next(
        (
            entry
            for entry in queue.entries()
            if entry["phase"] == turn.running and _about(entry, turn)
        ),
        None,
    )


def settle(turn: Turn, queue: InterventionQueue, *, outcome: str) -> Entry | None:
    """Resolve, verified, what the turn has got past; `outcome` is how the turn ended.

    None if there is nothing to close, or somebody has closed it meanwhile: their word stands.
    Raises StorageError.
    """
    retry = turn.retry
    if retry is None or not retry.passed or retry.note is None or turn.status == "abandoned":
        return None
    try:
        return queue.resolve(
            retry.intervention_id, retry.note, by=retry.by, via=retry.via, verified=outcome
        )
    except ConflictError:
        return None
