"""What `[retention]` lets go of, beside the queue's archive: turns, conversations and logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from interventions import InterventionQueue
from interventions.entry import is_open
from interventions.home import error_log_folder
from interventions.settings import RetentionSettings
from interventions.times import earlier, to_text
from unified_flow.engine.telemetry.query_log import QueryLog
from unified_flow.resume.housekeeping import prunable
from unified_flow.turns.sessions import SessionStore
from unified_flow.turns.store import TurnStore

ANY = 10**9  # sessions
MB = 10**6


@dataclass(frozen=True)
class Outdated:
    sessions: Sequence[str]
    logs: Sequence[Path]


def prune_rest(
    queue: InterventionQueue,
    sessions: SessionStore,
    keep: RetentionSettings,
    now: datetime,
    *,
    dry_run: bool,
) -> Outdated:
    """Conversations of which the last answer is too old, and logs that are too old, or beyond what
    all of them may take. Raises RetrievalError and OSError."""
    last = to_text(earlier(now, timedelta(days=keep.sessions_days))) if keep.sessions_days else ""
    old = [each.session_id for each in sessions.sessions(ANY) if each.last_at < last]
    logs = _logs(queue, keep, now)
    if not dry_run:
        for session_id in old:
            sessions.forget(session_id)
        for path in logs:
            path.unlink(missing_ok=True)
        if keep.logs_days or keep.logs_mb:
            QueryLog(queue.home).put_aside(now.date())  # to be removed as a whole, one day
    return Outdated(old, logs)


def _logs(queue: InterventionQueue, keep: RetentionSettings, now: datetime) -> list[Path]:
    """Not today's, nor those from which an open failure could be restored."""
    paths = [*error_log_folder(queue.home).glob("????-??-??.jsonl"), *QueryLog(queue.home).aside()]
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


async def oversized(
    turns: TurnStore, keep: set[int], most_bytes: float, now: datetime
) -> list[int]:
    """The oldest finished turns beyond what all of them may take."""
    sizes = await turns.sizes()
    beyond, chosen = sum(sizes.values()) - most_bytes, list[int]()
    for turn_id in await prunable(turns, keep, now) if beyond > 0 else []:
        if beyond > 0:
            chosen.append(turn_id)
            beyond -= sizes.get(turn_id, 0)
    return chosen
