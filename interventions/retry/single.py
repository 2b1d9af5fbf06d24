"""Retry, then resolve: the one way in which the commands and the monitor do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interventions.entry import Entry, is_open, short_id
from interventions.errors import ConflictError, QueueError
from interventions.plaintext import one_line
from interventions.retry.contract import (
    ANSWERED_BEFORE,
    RetriedEntry,
    RetryRequest,
    RetryResult,
    StillOpenError,
)
from interventions.retry.resumers import retry
from interventions.secrets.redaction import redact_text

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue


def retry_entry(
    queue: InterventionQueue, request: RetryRequest, *, expected_version: int | None = None
) -> RetriedEntry:
    """Resume the turn, which resolves the entry that the request names, verified, once its phase
    has completed.

    Raises ConflictError, and then nothing has happened, for an entry that is closed or is not
    `expected_version`; RetryFailedError if the phase failed again; ConflictError if somebody
    dismissed the entry meanwhile; another QueueError if the turn cannot be resumed.
    """
    before = to_be_retried(queue, request.intervention_id or "", expected_version)
    try:
        result = retry(queue.home, request)
    except QueueError:
        now = queue.find(before["id"])
        if now["resolved_at"] is None:
            raise
        # Whoever resumed the turn died before they could close it; that has been made up for.
        return RetriedEntry(now, RetryResult(now["turn_id"], ANSWERED_BEFORE))
    now = queue.find(before["id"])
    if now["resolved_at"] is not None:
        return RetriedEntry(now, result)
    if not is_open(now):
        raise ConflictError(
            f"{now['id']} was dismissed while its turn went on",
            hint=f"interventions show {short_id(now['id'])}",
        )
    return RetriedEntry(now, result, result.why_open)


def to_be_retried(
    queue: InterventionQueue, intervention_id: str, expected_version: int | None = None
) -> Entry:
    """The entry, if a retry of it may begin. Raises NotFoundError; ConflictError for one that is
    closed or is not `expected_version`."""
    entry = queue.find(intervention_id)
    name = short_id(entry["id"])
    if not is_open(entry):
        raise ConflictError(f"{entry['id']} is closed", hint=f"interventions reopen {name}")
    if expected_version is not None and entry["version"] != expected_version:
        raise ConflictError(
            f"{entry['id']} is version {entry['version']}, not {expected_version}",
            hint=f"somebody changed it: interventions show {name}",
        )
    return entry


def retry_and_resolve(
    queue: InterventionQueue, request: RetryRequest, *, expected_version: int | None = None
) -> RetriedEntry:
    """`retry_entry`, and the entry is resolved, unverified, if its resumer only says that the turn
    went on to its end. Raises StillOpenError if it is not solved, and what `retry_entry` raises."""
    retried = retry_entry(queue, request, expected_version=expected_version)
    if retried.resolved:
        return retried
    if not retried.result.solved:
        raise StillOpenError(retried)
    now = queue.resolve(
        retried.entry["id"],
        request.note,
        expected_version=retried.entry["version"],
        by=request.by,
        via=request.via,
    )
    return RetriedEntry(now, retried.result)


def how_it_went(entry: Entry, result: RetryResult) -> list[str]:
    """What the resumer tells of a turn that got past the failed phase, in lines for a person; a
    resumer may tell nothing."""
    turn, name, lines = f"turn {entry['turn_id']}", short_id(entry["id"]), []
    if result.failed:
        again = result.intervention_id
        where = f"intervention {short_id(again)}" if again else "nobody was told"
        past = f"{turn} got past {entry['phase']}, then failed in {result.phase} ({where})"
        lines.append(f"{past}: {(result.message or '')[:300]}")
    elif result.status == ANSWERED_BEFORE:
        lines.append(f"{turn} was answered before; what was left was to close {name}")
    elif result.status:
        where = result.went_on_at or entry["phase"]
        lines.append(f"{turn} went on from {where} and is {result.status}")
    if result.trouble:
        closes = f"the next interventions retry {name} does"
        lines.append(f"warning: it could not be resolved ({closes}): {result.trouble}")
    return [one_line(redact_text(line)) for line in lines]
