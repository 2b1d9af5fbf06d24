"""Retry, then resolve: the one way in which the commands and the monitor do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interventions.entry import Entry, is_open, short_id
from interventions.errors import ConflictError, QueueError
from interventions.retry.resumers import retry
from interventions.secrets.redaction import redact_text
from interventions.view.plaintext import one_line

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue


@dataclass(frozen=True)
class Retried:
    """The entry as it stands now, and what the resumer told. `why_open` says why it is open."""

    entry: Entry
    result: Mapping[str, Any]
    why_open: str = ""

    @property
    def resolved(self) -> bool:
        return not self.why_open


class StillOpenError(QueueError):
    """The turn went on, and the entry is not solved by that; `retried` says how it went."""

    def __init__(self, retried: Retried) -> None:
        name = short_id(retried.entry["id"])
        waits = retried.result.get("waiting") is not None
        super().__init__(
            f"{retried.entry['id']} stays open: {retried.why_open}",
            hint=f"interventions retry {name} --all" if waits else f"interventions show {name}",
        )
        self.retried = retried


def retry_entry(
    queue: InterventionQueue,
    entry: Entry,
    *,
    note: str,
    by: str | None = None,
    via: str = "library",
    expected_version: int | None = None,
    **options: Any,
) -> Retried:
    """Resume the entry's turn, which resolves the entry, verified, once its phase has completed.

    `options` go to the resumer (resumers.py). Raises ConflictError, and then nothing has happened,
    for an entry that is closed or is not `expected_version`; RetryFailedError if the phase failed
    again; ConflictError if somebody dismissed the entry meanwhile; another QueueError if the turn
    cannot be resumed.
    """
    before = to_be_retried(queue, entry["id"], expected_version)
    name = short_id(before["id"])
    try:
        result = retry(before, queue.home, note=note, by=by, via=via, **options)
    except QueueError:
        now = queue.find(before["id"])
        if now["resolved_at"] is None:
            raise
        # Whoever resumed the turn died before they could close it; that has been made up for.
        return Retried(now, {"turn_id": now["turn_id"], "status": "answered before"})
    now = queue.find(before["id"])
    if now["resolved_at"] is not None:
        return Retried(now, result)
    if not is_open(now):
        raise ConflictError(
            f"{now['id']} was dismissed while its turn went on",
            hint=f"interventions show {name}",
        )
    return Retried(now, result, _why_open(result))


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
    queue: InterventionQueue,
    entry: Entry,
    *,
    note: str,
    by: str | None = None,
    via: str = "library",
    expected_version: int | None = None,
    **options: Any,
) -> Retried:
    """`retry_entry`, and the entry is resolved, unverified, if its resumer only says that the turn
    went on to its end. Raises StillOpenError if it is not solved, and what `retry_entry` raises."""
    retried = retry_entry(
        queue, entry, note=note, by=by, via=via, expected_version=expected_version, **options
    )
    if retried.resolved:
        return retried
    if retried.result.get("status") == "failed" or not _solved(retried.result):
        raise StillOpenError(retried)
    now = queue.resolve(
        retried.entry["id"], note, expected_version=retried.entry["version"], by=by, via=via
    )
    return Retried(now, retried.result)


def how_it_went(entry: Entry, result: Mapping[str, Any]) -> list[str]:
    """What the resumer tells of a turn that got past the failed phase, in lines for a person; a
    resumer may tell nothing."""
    turn, name, lines = f"turn {entry['turn_id']}", short_id(entry["id"]), []
    if result.get("status") == "failed":
        again = result.get("intervention_id")
        where = f"intervention {short_id(str(again))}" if again else "nobody was told"
        past = f"{turn} got past {entry['phase']}, then failed in {result.get('phase')} ({where})"
        lines.append(f"{past}: {str(result.get('message') or '')[:300]}")
    elif result.get("status") == "answered before":
        lines.append(f"{turn} was answered before; what was left was to close {name}")
    elif status := result.get("status"):
        lines.append(f"{turn} went on from {result.get('from', entry['phase'])} and is {status}")
    if trouble := result.get("trouble"):
        closes = f"the next interventions retry {name} does"
        lines.append(f"warning: it could not be resolved ({closes}): {trouble}")
    return [one_line(redact_text(line)) for line in lines]


def went_well(result: Mapping[str, Any]) -> bool:
    """Nothing of how it went needs a person."""
    return result.get("status") != "failed" and not result.get("trouble")


def _solved(result: Mapping[str, Any]) -> bool:
    """Nothing that the resumer told speaks against it."""
    return result.get("waiting") is None and result.get("passed", True)


def _why_open(result: Mapping[str, Any]) -> str:
    if result.get("trouble"):
        return f"it could not be resolved: {result['trouble']}"
    if result.get("waiting") is not None:
        return f"turn {result['waiting']} waits for the same fix"
    if result.get("status") == "failed":
        return f"its turn failed in {result.get('phase') or 'a phase'}"
    if not result.get("passed", True):
        return "its phase has not completed"
    return "nothing says that its phase has completed"
