"""Turns that nobody needs any more are removed while nobody else can run them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError
from unified_flow.turns.archive import read_turn
from unified_flow.turns.store import TurnLease, TurnStore
from unified_flow.turns.turn import Turn

AT_ONCE = 100  # each holds a descriptor while it is looked at


async def remove(
    turns: TurnStore,
    turn_ids: Sequence[int],
    *,
    needed: Callable[[], set[int]],
    may_go: Callable[[Turn | None], bool],
    before: datetime | None = None,
    reserve: int = 0,
) -> set[int]:
    """Remove turns; returns those that are gone. Not one that somebody runs, that was written to
    since `before`, that is `needed` by now (it may have been resumed and have failed meanwhile), or
    that a newer version has written. `may_go` judges the others: None for a damaged one. The number
    `reserve` is not given to another turn. Raises OSError."""
    gone = set[int]()
    for first in range(0, len(turn_ids), AT_ONCE):
        held = list[TurnLease]()
        try:
            for turn_id in turn_ids[first : first + AT_ONCE]:
                try:
                    held.append(await turns.open(turn_id))
                except FileNotFoundError:
                    gone.add(turn_id)
                except BlockingIOError:
                    continue
            kept = await asyncio.to_thread(needed)
            for lease in held:
                mark = await turns.mark(lease.turn_id)
                fresh = mark is None or (before is not None and not mark.is_before(before))
                if not fresh and lease.turn_id not in kept and await _judged(lease, turns, may_go):
                    await lease.remove(reserve=lease.turn_id == reserve)
                    gone.add(lease.turn_id)
        finally:
            for lease in held:
                await lease.release()
    return gone


async def _judged(
    lease: TurnLease, turns: TurnStore, may_go: Callable[[Turn | None], bool]
) -> bool:
    try:
        turn, _ = await read_turn(turns, lease.turn_id)
    except JournalVersionError:
        return False
    except RetrievalError:
        return may_go(None)
    return may_go(turn)
