"""What becomes of the interventions of a turn that went on (architecture/resuming.md, the table).

One owner decides it, here: the failure path asks before a later failure is put, so that the solved
entry makes room for it, and the end of a resumed turn asks again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from interventions import InterventionQueue
from interventions.entry import Entry, is_about, is_open, turns_of
from interventions.errors import ConflictError, NotFoundError, QueueError
from interventions.secrets.redaction import redact_text
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.turn import FINISHED, Turn

Verdict = Literal["solved", "waits", "open"]


@dataclass(frozen=True)
class ResolutionRequest:
    """What the person who let the turn go on said: `note` None leaves the closing to others;
    `about` are the interventions that it was said of."""

    note: str | None
    by: str
    via: str
    about: frozenset[str]


def retried_intervention(
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
            if _is_of(entry, turn) and not turn.is_past(entry["phase"]):
                return entry["id"], entry["phase"]
        wanted = failed or before
        found = queue.find(wanted) if wanted is not None else _put_before_it_died(turn, queue)
    except NotResumableError:
        raise
    except QueueError:
        return None  # the queue's own trouble is no reason to leave the turn where it is
    if found is None or not _is_of(found, turn):
        return None
    if turn.failure is not None and turn.failure.phase != found["phase"]:
        return None
    return found["id"], found["phase"]


def _is_of(entry: Entry, turn: Turn) -> bool:
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
            if entry["phase"] == turn.stopped_in and _is_of(entry, turn)
        ),
        None,
    )


def entry_state(
    entry: Entry, turn: Turn, retried: Collection[str], *, others_wait: bool
) -> Verdict:
    """What becomes of an open entry of the turn that is among `retried`, or that counts it.

    Solved: the journal says that its phase has completed since the failure, nothing went back
    behind that, and no other turn waits for the same fix.
    """
    retry = turn.retry
    own = entry["id"] in retried and _is_of(entry, turn)
    if turn.status == "abandoned" or not (own or _counts(entry, turn)):
        return "open"
    mine = retry is not None and retry.intervention_id == entry["id"]
    passed = retry.passed if mine and retry is not None else turn.is_past(entry["phase"])
    if not passed:
        return "open"
    return "waits" if others_wait else "solved"


def _counts(entry: Entry, turn: Turn) -> bool:
    return entry["turn_id"] != turn.turn_id and is_about(entry, turn.turn_id)


@dataclass(frozen=True)
class Resolutions:
    """`solved` are the entries that were resolved, verified; `waiting` those whose phase the turn
    is past, each with a turn for whose sake it stays open."""

    solved: tuple[str, ...]
    waiting: dict[str, int]


def resolve_passed(
    turn: Turn,
    queue: InterventionQueue,
    archive: TurnArchive,
    word: ResolutionRequest,
    *,
    outcome: str,
) -> Resolutions:
    """Resolve, verified and with the person's note, whatever the turn has got past; `outcome` is
    how it ended.

    What somebody has closed meanwhile stays as they left it. Raises StorageError.
    """
    solved: list[str] = []
    waiting: dict[str, int] = {}
    for entry in queue.entries():
        if not is_open(entry) or not is_about(entry, turn.turn_id):
            continue
        if entry_state(entry, turn, word.about, others_wait=False) != "solved":
            continue
        other = other_waiting_turn(entry, turn, archive)
        if entry_state(entry, turn, word.about, others_wait=other is not None) == "solved":
            if word.note is not None and _resolved(entry, queue, word, outcome):
                solved.append(entry["id"])
        elif other is not None:
            waiting[entry["id"]] = other
    return Resolutions(tuple(solved), waiting)


def _resolved(
    entry: Entry, queue: InterventionQueue, word: ResolutionRequest, outcome: str
) -> bool:
    assert word.note is not None
    try:
        queue.resolve(entry["id"], word.note, by=word.by, via=word.via, verified=outcome)
    except (ConflictError, NotFoundError):
        return False
    return True


def awaited_by_others(turn: Turn, queue: InterventionQueue, archive: TurnArchive) -> set[str]:
    """The open entries of the turn for whose fix other turns wait still."""
    mine = (e for e in queue.entries() if is_open(e) and is_about(e, turn.turn_id))
    return {entry["id"] for entry in mine if other_waiting_turn(entry, turn, archive) is not None}


def other_waiting_turn(entry: Entry, turn: Turn, archive: TurnArchive) -> int | None:
    """A turn, other than this one, that waits for the same fix; the latest of them."""
    # From behind: `retry --all` takes them in order, so that mostly the first look tells.
    for turn_id in reversed(turns_of(entry)):
        if turn_id == turn.turn_id:
            continue
        try:
            other = archive.load(turn_id)
        except RetrievalError:
            continue  # nothing can go on with it
        if other is None or other.status in FINISHED or other.is_past(entry["phase"]):
            continue
        return turn_id
    return None
