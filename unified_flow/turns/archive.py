"""Reading turns back from their store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unified_flow.errors import RetrievalError
from unified_flow.errors.sqlite import is_broken
from unified_flow.errors.turns import NoSuchTurnError
from unified_flow.turns.store import TurnMark, TurnStore
from unified_flow.turns.turn_index import TurnIndex, TurnQuery, TurnRow, opened

if TYPE_CHECKING:
    from unified_flow.turns.events import AnyEvent
    from unified_flow.turns.turn import Turn


async def read_turn(store: TurnStore, turn_id: int) -> tuple[Turn, list[AnyEvent]]:
    """The turn, and what happened in it; turn 0 for a journal without a whole line.

    Raises FileNotFoundError without a journal, and RetrievalError for one that is damaged. No lock
    is taken.
    """
    from unified_flow.turns.events import TurnStarted
    from unified_flow.turns.fold import fold

    events = await store.read(turn_id)
    if events and not isinstance(events[0], TurnStarted):
        raise damaged(store.place(turn_id), "its first line is missing")
    with named_damage(store.place(turn_id), events):
        return fold(events), events


@contextmanager
def named_damage(place: str, events: Sequence[AnyEvent]) -> Iterator[None]:
    """Lines that are whole, and that no turn can have written in this order, are damage, and it is
    said where. Values that this program does not know are another version's."""
    from unified_flow.turns.events import TurnResumed, TurnStarted, TurnTakenOver
    from unified_flow.turns.fold import JournalOrderError, UnknownValueError
    from unified_flow.turns.lines import other_version

    try:
        yield
    except UnknownValueError as exc:
        runs = [e for e in events if isinstance(e, TurnStarted | TurnResumed | TurnTakenOver)]
        raise other_version(place, str(exc), runs[-1].version) from exc
    except JournalOrderError as exc:
        raise damaged(place, str(exc), exc.turn.turn_id or None) from exc


def damaged(place: str, reason: str, turn_id: int | None = None) -> RetrievalError:
    """`turn_id` if a part of the turn can be kept."""
    from unified_flow.turns.lines import remedy

    return RetrievalError(f"the turn in {place} cannot be read: {reason}", hint=remedy(turn_id))


Unreadable = dict[int, str]
"""By turn, what is wrong with it."""

LAST = "last"
MAX_DIGITS = 15
AT_ONCE = 250  # turns, between two commits of the index
NO_LIMIT = 10**15


@dataclass(frozen=True)
class TurnArchive:
    """Reads turns back from their store. `index` is where the index of them lies; without it each
    list reads them all."""

    store: TurnStore
    index: Path | None = None

    async def load(self, turn_id: int, mark: TurnMark | None = None) -> Turn | None:
        """None if there is no such turn. Raises RetrievalError for a damaged journal. `mark` is
        that of just now, for a caller who has it."""
        found = await self.load_with_events(turn_id, mark)
        return found[0] if found else None

    async def load_with_events(
        self, turn_id: int, mark: TurnMark | None = None
    ) -> tuple[Turn, list[AnyEvent]] | None:
        """`load`, and what happened in the turn.

        A turn that seems to run while no process holds its lock is interrupted. Looking at one that
        is done or has not begun takes no lock, which would be in the way of its beginning.
        """
        store, place = self.store, self.store.place(turn_id)
        try:
            mark = mark or await store.mark(turn_id)
            turn, events = await read_turn(store, turn_id)
            if turn.status == "running" and await store.is_queued(turn_id):
                turn = replace(turn, status="queued")
            elif turn.status == "running" and turn.turn_id and not await store.is_held(turn_id):
                # It may have ended between reading the journal and testing its lock.
                if await store.mark(turn_id) != mark:
                    turn, events = await read_turn(store, turn_id)
                if turn.status == "running":
                    turn = turn.interrupted()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise damaged(place, exc.strerror or str(exc)) from exc
        if turn.turn_id not in (0, turn_id):
            raise damaged(place, f"it is the journal of turn {turn.turn_id}")
        return (turn, events) if turn.turn_id else None  # killed before its first line

    async def require(self, turn_id: int) -> Turn:
        """`load`. Raises NoSuchTurnError too."""
        turn = await self.load(turn_id)
        if turn is None:
            raise await self.no_such_turn(turn_id)
        return turn

    async def no_such_turn(self, turn_id: int) -> NoSuchTurnError:
        if await self.store.mark(turn_id) is not None:
            return NoSuchTurnError(
                f"turn {turn_id} was never begun: there is nothing in its journal, in "
                f"{self.store.place(turn_id)}",
                hint="ask its question again; unified-flow turns prune removes it",
            )
        return self._no_turn(turn_id)

    def _no_turn(self, name: int | str) -> NoSuchTurnError:
        none = "there are no turns yet" if name == LAST else f"there is no turn {name}"
        return NoSuchTurnError(
            f"{none} in {self.store.place()}", hint="the turns: unified-flow turns list"
        )

    async def find(self, name: str) -> Turn | None:
        """The turn of that `number`. Raises as `load` does."""
        try:
            return await self.load(await self.number(name))
        except NoSuchTurnError:
            return None

    async def number(self, name: str) -> int:
        """A turn by its number or request id; `last` is the newest, also if it is damaged: another
        must not be taken for it. Raises NoSuchTurnError, but not for a number."""
        if name.isdecimal() and len(name) <= MAX_DIGITS:
            return int(name)
        found = await (self._newest() if name == LAST else self._asked_as(name))
        if found is None:
            raise self._no_turn(name)
        return found

    async def _newest(self) -> int | None:
        for turn_id in reversed(await self.store.ids()):
            try:
                if await self.load(turn_id) is not None:
                    return turn_id
            except RetrievalError:
                return turn_id
        return None

    async def _asked_as(self, request_id: str) -> int | None:
        """The newest. Reads only the first line of each journal: a mistyped id must not cost
        reading every turn."""
        for turn_id in reversed(await self.store.ids()):
            with suppress(FileNotFoundError, RetrievalError):
                began = await self.store.first(turn_id)
                if began is not None and began.request_id == request_id:
                    return turn_id
        return None

    async def latest(self, limit: int | None, query: TurnQuery) -> tuple[list[Turn], Unreadable]:
        """`select`, each read whole."""
        rows, unreadable = await self.select(limit, query)
        turns = [await self.load(row["turn_id"]) for row in rows]
        return [turn for turn in turns if turn is not None], unreadable

    async def select(self, limit: int | None, query: TurnQuery) -> tuple[list[TurnRow], Unreadable]:
        """The newest turns that `query` takes, and what is wrong with those that cannot be read."""
        try:
            return await self._select(self.index, limit or NO_LIMIT, query)
        except (OSError, sqlite3.Error) as exc:
            # The disk is full or read-only, or the index damaged or a newer version's.
            if isinstance(exc, sqlite3.DatabaseError) and is_broken(exc) and self.index is not None:
                self.index.unlink(missing_ok=True)
            return await self._select(None, limit or NO_LIMIT, query)

    async def cut_off(self) -> list[TurnRow]:
        """Turns that were interrupted and those whose process is gone, also of older versions and
        on a disk that was full; oldest first."""
        return (await self.select(None, TurnQuery(status="interrupted")))[0][::-1]

    async def _select(
        self, path: Path | None, limit: int, query: TurnQuery
    ) -> tuple[list[TurnRow], Unreadable]:
        rows: list[TurnRow] = []
        unreadable: Unreadable = {}
        ids = await self.store.ids()
        with opened(path) as index:
            high = NO_LIMIT
            while len(rows) < limit and high:
                ids, some = ids[:-AT_ONCE], ids[-AT_ONCE:]
                low = ids[-1] + 1 if ids else 0  # and so what is gone in between is dropped too
                passing = await self._refresh(index, some, low, high, unreadable)
                rows += index.rows(query, low, high, limit - len(rows))
                index.drop(passing)
                index.commit()
                high = low - 1 if ids else 0
        return rows, unreadable

    async def _refresh(
        self, index: TurnIndex, turn_ids: Sequence[int], low: int, high: int, unreadable: Unreadable
    ) -> list[int]:
        """Bring the index up to date from `low` to `high`. Returns those that it is to keep no
        longer than this: turns that run, or whose user wants none kept."""
        gone, passing = index.marks(low, high), list[int]()
        for turn_id in reversed(turn_ids):
            mark = await self.store.mark(turn_id)
            if mark is None or gone.get(turn_id) == mark:
                if mark is not None:
                    del gone[turn_id]
                continue
            try:
                turn = await self.load(turn_id, mark)
            except RetrievalError as exc:
                unreadable[turn_id] = str(exc)
                continue
            if turn is not None:
                gone.pop(turn_id, None)
                index.keep(turn, mark)
                if turn.status in ("queued", "running") or not turn.persist:
                    passing.append(turn_id)
            # One whose number alone is taken is just being begun, or never was. A power cut, or a
            # hand, leaves a journal without its first line that nobody writes.
            elif (
                mark.size == 0
                and not await self.store.is_held(turn_id)
                and await self.store.mark(turn_id) == mark
            ):
                unreadable[turn_id] = str(await self.no_such_turn(turn_id))
        index.drop(gone)
        return passing

    async def page(self, turn_id: int) -> str:
        """The turn for reading, from its journal: like `context.md`, for a killed turn too, and
        without the secrets that the structure of an output tells."""
        from unified_flow.turns.context_page import markdown

        return "".join([markdown(event, clean=True) for event in await self.store.read(turn_id)])
