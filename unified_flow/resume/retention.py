"""What `[retention]` lets go of, beside the queue's archive: turns, conversations and logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from interventions import InterventionQueue
from interventions.entry import is_open
from interventions.home import error_log_folder
from interventions.queue import queue_at
from interventions.settings import RetentionSettings, settings_of
from interventions.times import earlier, to_text, utc_now
from unified_flow.engine.telemetry.query_log import QueryLog
from unified_flow.lib.threads import wait_for
from unified_flow.stores import session_store, turn_archive
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.removal import remove
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import FINISHED
from unified_flow.turns.turn_index import TurnQuery, TurnRow

ANY = 10**9  # sessions
MB = 10**6


@dataclass(frozen=True)
class Pruned:
    """What went, or would go: turns, of which `removed` are gone, conversations and log files."""

    turns: Sequence[int]
    removed: int
    sessions: Sequence[str]
    logs: Sequence[Path]


def prune(home: Path, *, older_than: timedelta | None = None, dry_run: bool = False) -> Pruned:
    """Turns that are `older_than`; else whatever is beyond what `[retention]` keeps.

    Raises RetrievalError, QueueError and OSError.
    """
    now, kept = utc_now(), settings_of(home, RetentionSettings)
    queue, archive = queue_at(home), turn_archive(home)
    keep = queue.turns_needed
    before = earlier(now, timedelta(days=kept.turns_days) if older_than is None else older_than)
    chosen = wait_for(unneeded(archive, keep(), before))
    sessions, logs = list[str](), list[Path]()
    if older_than is None:
        sessions = _old_sessions(home, kept, now, dry_run=dry_run)
        logs = _logs(queue, kept, now)
        if not dry_run:
            for path in logs:
                path.unlink(missing_ok=True)
            log = QueryLog.of(home)
            if kept.logs_days or kept.logs_mb:
                log.put_aside(now.date())  # to be removed as a whole, one day
            if kept.logs_days:
                log.forget(earlier(now, timedelta(days=kept.logs_days)))
    removed = 0 if dry_run else wait_for(delete(archive.store, chosen, keep, before))
    if older_than is None and kept.turns_mb:
        beyond = wait_for(_oversized(archive, keep(), kept.turns_mb * MB, now))
        removed += 0 if dry_run else wait_for(delete(archive.store, beyond, keep))
        chosen = sorted({*chosen, *beyond})
    return Pruned(chosen, removed, sessions, logs)


def _old_sessions(
    home: Path, keep: RetentionSettings, now: datetime, *, dry_run: bool
) -> list[str]:
    """Conversations of which the last answer is too old."""
    if not keep.sessions_days:
        return []
    last = to_text(earlier(now, timedelta(days=keep.sessions_days)))
    with closing(session_store(home)) as sessions:
        old = [each.session_id for each in sessions.sessions(ANY) if each.last_at < last]
        for session_id in [] if dry_run else old:
            sessions.forget(session_id)
    return old


def _logs(queue: InterventionQueue, keep: RetentionSettings, now: datetime) -> list[Path]:
    """Error logs that are too old, or beyond what all may take: not today's, nor those from which
    an open failure could be restored, nor emergency logs while a failure waits there."""
    paths = [*error_log_folder(queue.home).glob("????-??-??.jsonl"), *QueryLog(queue.home).aside()]
    if not queue.store.waiting()[0]:
        paths += error_log_folder(queue.home).glob("emergency_????-??-??.jsonl")
    logs = sorted((path.stem[-10:], path.stat().st_size, path) for path in paths)
    beyond = sum(size for _, size, _ in logs) - keep.logs_mb * MB if keep.logs_mb else 0
    age = timedelta(days=keep.logs_days)
    oldest = earlier(now, age).date().isoformat() if age else ""
    failed = (each["created_at"][:10] for each in queue.entries() if is_open(each))
    needed = min([f"{now:%F}", *failed])
    gone = []
    for day, size, path in logs:
        if day < needed and (day < oldest or beyond > 0):
            gone.append(path)
            beyond -= size
    return gone


async def _oversized(
    archive: TurnArchive, keep: set[int], most_bytes: float, now: datetime
) -> list[int]:
    """The oldest finished turns beyond what all of them may take."""
    sizes = await archive.store.sizes()
    beyond, chosen = sum(sizes.values()) - most_bytes, list[int]()
    for turn_id in await unneeded(archive, keep, now) if beyond > 0 else []:
        if beyond > 0:
            chosen.append(turn_id)
            beyond -= sizes.get(turn_id, 0)
    return chosen


async def unneeded(archive: TurnArchive, keep: set[int], before: datetime) -> list[int]:
    """Turns last written to before `before` that are finished, but for those to `keep`, which
    something open needs, and the newest; oldest first."""
    found, _ = await archive.select(None, TurnQuery())
    marks = await archive.store.marks()
    keep = {*keep, max(marks, default=0)}
    old = {turn_id for turn_id, mark in marks.items() if mark.is_before(before)} - keep
    finished = (row["turn_id"] for row in reversed(found) if _is_finished(row))
    return [turn_id for turn_id in finished if turn_id in old]


async def delete(
    turns: TurnStore,
    turn_ids: Sequence[int],
    needed: Callable[[], set[int]],
    before: datetime | None = None,
) -> int:
    """Remove those that are finished, and what an interrupted run has left; how many. The number of
    the newest is not used again. Raises OSError."""
    known = await turns.ids()
    gone = await remove(
        turns,
        sorted({*turn_ids}.intersection(known)),
        needed=needed,
        may_go=lambda turn: turn is not None and _is_finished(turn.as_row()),
        before=before,
        reserve=max(known, default=0),
    )
    await turns.sweep(before)
    return len(gone)


def _is_finished(turn: TurnRow) -> bool:
    """Whether nothing is left to do; also of a failed one that was queued: nothing open needs it.
    Not of an answer that could not be saved: it can still be."""
    if turn["status"] == "failed":
        return turn["intervention_id"] is not None
    return turn["status"] in FINISHED and (turn["saved"] or turn["status"] != "answered")
