"""Closing the intervention whose retry got past the phase that it is about."""

from __future__ import annotations

from interventions import InterventionQueue
from interventions.entry import Entry, is_about, is_open
from interventions.errors import ConflictError, NotFoundError, QueueError
from interventions.redaction import redact_text
from unified_flow.archive import TurnArchive
from unified_flow.errors import RetrievalError
from unified_flow.events import TurnResumed
from unified_flow.resuming.errors import NotResumableError
from unified_flow.turn import Turn

FINISHED = ("answered", "clarify", "abandoned", "silenced")


def own_intervention(
    turn: Turn, queue: InterventionQueue, named: str | None
) -> tuple[str, str] | None:
    """(id, phase) of the open intervention that is retried when the turn goes on; None if none is.

    That is the one that a person named, unless the turn is past its phase, else that of the
    failure. One that only counts this turn is about another, and is not counted on here. Raises
    NotResumableError if the turn that was meant is gone.
    """
    failed = turn.failure.intervention_id if turn.failure else None
    before = turn.retry.intervention_id if turn.retry else None
    try:
        if named is not None:
            entry = queue.find(named)
            _must_be_this_turn(entry, turn)
            if _about(entry, turn) and not turn.is_past(entry["phase"]):
                return entry["id"], entry["phase"]
        wanted = failed or before
        found = queue.find(wanted) if wanted is not None else _put_before_it_died(turn, queue)
    except NotResumableError:
        raise
    except QueueError:
        return None  # the queue's own trouble is no reason to leave the turn where it is
    if found is None or not _about(found, turn):
        return None
    if turn.failure is not None and turn.failure.phase != found["phase"]:
        return None
    return found["id"], found["phase"]


def _about(entry: Entry, turn: Turn) -> bool:
    return is_open(entry) and entry["turn_id"] == turn.turn_id and _same_request(entry, turn)


def _same_request(entry: Entry, turn: Turn) -> bool:
    known_as = (None, "", turn.request_id, redact_text(turn.request_id))
    return entry.get("request_id") in known_as


def _must_be_this_turn(entry: Entry, turn: Turn) -> None:
    """The number alone may be another turn's, whose folder somebody has removed."""
    if entry["turn_id"] == turn.turn_id and not _same_request(entry, turn):
        raise NotResumableError(
            f"the turn of {entry['id']} is gone, and its number {turn.turn_id} is another's",
            hint="mend the cause, ask again, and resolve it with a note",
        )


def _put_before_it_died(turn: Turn, queue: InterventionQueue) -> Entry | None:
    """The process may die when a failure is in the queue and not yet in the journal."""
    return next(
        (
            entry
            for entry in queue.entries()
            if entry["phase"] == turn.stopped_in and _about(entry, turn)
        ),
        None,
    )


def settle(
    turn: Turn, queue: InterventionQueue, archive: TurnArchive, *, outcome: str
) -> Entry | None:
    """Resolve, verified, what the turn has got past; `outcome` is how the turn ended.

    None if there is nothing to close, if somebody has closed it meanwhile (their word stands), or
    if other turns that were counted on it wait still. Raises StorageError.
    """
    retry = turn.retry
    if retry is None or not retry.passed or retry.note is None or turn.status == "abandoned":
        return None
    try:
        if waiting_too(queue.find(retry.intervention_id), turn, archive) is not None:
            return None
        return queue.resolve(
            retry.intervention_id, retry.note, by=retry.by, via=retry.via, verified=outcome
        )
    except (ConflictError, NotFoundError):
        return None


def settle_counted(
    turn: Turn,
    queue: InterventionQueue,
    archive: TurnArchive,
    went_on: TurnResumed,
    *,
    outcome: str,
) -> Entry | None:
    """Resolve, verified, the intervention of another turn that counted this one, if this was the
    last that waited for its fix. Raises StorageError."""
    if went_on.note is None:
        return None
    for entry in queue.entries():
        counted = is_open(entry) and turn.turn_id in (entry.get("turns") or ())
        if counted and turn.is_past(entry["phase"]) and waiting_too(entry, turn, archive) is None:
            try:
                return queue.resolve(
                    entry["id"], went_on.note, by=went_on.by, via=went_on.via, verified=outcome
                )
            except ConflictError:
                continue
    return None


def needed_by_others(turn: Turn, queue: InterventionQueue, archive: TurnArchive) -> set[str]:
    """The open entries of the turn for whose fix other turns wait still."""
    mine = (e for e in queue.entries() if is_open(e) and is_about(e, turn.turn_id))
    return {entry["id"] for entry in mine if waiting_too(entry, turn, archive) is not None}


def waiting_too(entry: Entry, turn: Turn, archive: TurnArchive) -> int | None:
    """A turn, other than this one, that waits for the same fix; the latest of them."""
    # From behind: `retry --all` takes them in order, so that mostly the first look tells.
    turns: list[int] = [entry["turn_id"], *(entry.get("turns") or ())]
    for turn_id in reversed(turns):
        if turn_id == turn.turn_id or not turn_id:
            continue
        try:
            other = archive.load(turn_id)
        except RetrievalError:
            continue  # nothing can go on with it
        if other is None or other.status in FINISHED or other.is_past(entry["phase"]):
            continue
        return turn_id
    return None
