"""What becomes of the interventions of a resumed turn (architecture/resuming.md, the table).

Decided here alone: at the end of the run, and before a later failure is put, so that the solved
entry makes room for it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from interventions import InterventionQueue
from interventions.entry import Entry, is_about, is_open, turns_of
from interventions.errors import QueueError
from interventions.secrets.redaction import redact_text
from unified_flow.engine.services import Services
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import PROCESS_DIED, JournalVersionError, NotResumableError
from unified_flow.lib.threads import wait_for
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.turn import FINISHED, Turn

logger = logging.getLogger("unified_flow")


def retried_intervention(
    turn: Turn, queue: InterventionQueue, named: str | None
) -> tuple[str, str] | None:
    """(id, phase) of the open intervention that a resumption retries; None if there is none.

    That is the one that a person named, unless the turn is past its phase, else that of the
    failure; never one that only counts this turn. Raises NotResumableError if the turn that the
    person means is gone.
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
        found = queue.find(wanted) if wanted is not None else _not_in_the_journal(turn, queue)
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
    """If the folder was removed, another turn may have its number."""
    if entry["turn_id"] == turn.turn_id and not _same_request(entry, turn):
        raise NotResumableError(
            f"the turn of {entry['id']} is gone, and its number {turn.turn_id} is another's",
            hint="mend the cause, ask again, and resolve it with a note",
        )


def _not_in_the_journal(turn: Turn, queue: InterventionQueue) -> Entry | None:
    """The process may have died with the failure in the queue and not yet in the journal, or the
    queue had no room, and the failure was drained since."""
    phase = turn.failure.phase if turn.failure is not None else turn.stopped_in
    return next(
        (entry for entry in queue.entries() if entry["phase"] == phase and _is_of(entry, turn)),
        None,
    )


def has_passed(entry: Entry, turn: Turn, retried: Collection[str]) -> bool:
    """Whether the turn has passed what an open entry is about: an entry that is among `retried`, of
    the death of its process, or that only counts the turn. The journal says that its phase has
    completed since the failure, and nothing went back behind that.
    """
    retry = turn.retry
    meant = entry["id"] in retried or entry["error_type"] == PROCESS_DIED
    own = meant and _is_of(entry, turn)
    if turn.status == "abandoned" or not (own or _counts(entry, turn)):
        return False
    if retry is not None and retry.intervention_id == entry["id"]:
        return retry.passed
    return turn.is_past(entry["phase"])


def _counts(entry: Entry, turn: Turn) -> bool:
    return entry["turn_id"] != turn.turn_id and is_about(entry, turn.turn_id)


@dataclass(frozen=True)
class Resolutions:
    """`solved` are the entries that were resolved, verified; `waiting` those whose phase the turn
    has passed, each with another turn that still waits for the fix."""

    solved: tuple[str, ...]
    waiting: dict[str, int]


def resolve_passed(
    turn: Turn,
    services: Services,
    note: str | None,
    *,
    about: frozenset[str],
    outcome: str,
    by: str,
    via: str,
) -> Resolutions:
    """Resolve, verified and with the note of the person who resumed it, what the turn has passed
    and no other turn waits for. Without a note others resolve it; `about` are the interventions
    that the note is meant for, `outcome` is how the turn ended. Raises StorageError.
    """
    queue, archive = services.queue, TurnArchive(services.turns)
    passed = [
        entry
        for entry in queue.entries()
        if is_open(entry) and is_about(entry, turn.turn_id) and has_passed(entry, turn, about)
    ]
    others = {entry["id"]: waiting_turn(entry, archive, but=turn.turn_id) for entry in passed}
    waiting = {entry_id: other for entry_id, other in others.items() if other is not None}
    solved = others.keys() - waiting.keys()
    if note is None or not solved:
        return Resolutions((), waiting)
    return Resolutions(queue.close_retried(solved, note, outcome=outcome, by=by, via=via), waiting)


@contextmanager
def may_stay_open(turn: Turn) -> Iterator[None]:
    """The queue's own trouble costs nobody anything: a later look closes what stays open."""
    try:
        yield
    except QueueError as exc:
        logger.warning("the intervention of turn %s is still open: %s", turn.turn_id, exc)


def resolve_retried(
    turn: Turn, services: Services, outcome: str, note: str | None = None, named: str | None = None
) -> None:
    """The one that the turn is a retry of, and the one that is `named`, with what the person said
    who resumed it, or now says."""
    if (retry := turn.retry) is None:
        return
    said = retry.note if note is None else note
    about = frozenset(filter(None, (retry.intervention_id, named)))
    with may_stay_open(turn):
        resolve_passed(
            turn, services, said, about=about, outcome=outcome, by=retry.by, via=retry.via
        )


def left_behind(turn: Turn, queue: InterventionQueue, archive: TurnArchive) -> set[str]:
    """The open entries of the turn for whose fix no other turn waits."""
    mine = (e for e in queue.entries() if is_open(e) and is_about(e, turn.turn_id))
    return {e["id"] for e in mine if waiting_turn(e, archive, but=turn.turn_id) is None}


def waiting_turn(entry: Entry, archive: TurnArchive, *, but: int = 0) -> int | None:
    """A turn, other than `but`, that waits for the fix; the latest of them."""
    # Backwards: `retry --all` takes them in order, so the last one mostly still waits.
    for turn_id in reversed(turns_of(entry)):
        if turn_id == but:
            continue
        try:
            other = wait_for(archive.load(turn_id))
        except JournalVersionError:
            return turn_id  # the version that wrote it can go on with it
        except RetrievalError:
            continue  # nothing can go on with it
        if other is None or other.status in FINISHED or other.is_past(entry["phase"]):
            continue
        return turn_id
    return None
