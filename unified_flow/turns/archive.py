"""Reading turns back from their store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NoSuchTurnError
from unified_flow.turns.context_page import markdown
from unified_flow.turns.events import AnyEvent, TurnResumed, TurnStarted, TurnTakenOver
from unified_flow.turns.fold import JournalOrderError, UnknownValueError, fold
from unified_flow.turns.lines import other_version, remedy
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn
from unified_flow.turns.turn_query import TurnQuery

T = TypeVar("T")


async def read_turn(store: TurnStore, turn_id: int) -> tuple[Turn, list[AnyEvent]]:
    """The turn, and what happened in it; turn 0 for a journal without a whole line.

    Raises FileNotFoundError without a journal, and RetrievalError for one that is damaged. No lock
    is taken.
    """
    events = await store.read(turn_id)
    if events and not isinstance(events[0], TurnStarted):
        raise damaged(store.place(turn_id), "its first line is missing")
    with named_damage(store.place(turn_id), events):
        return fold(events), events


@contextmanager
def named_damage(place: str, events: Sequence[AnyEvent]) -> Iterator[None]:
    """Lines that are whole, and that no turn can have written in this order, are damage, and it is
    said where. Values that this program does not know are another version's."""
    try:
        yield
    except UnknownValueError as exc:
        wrote = [
            e.version for e in events if isinstance(e, TurnStarted | TurnResumed | TurnTakenOver)
        ]
        raise other_version(place, str(exc), wrote[-1]) from exc
    except JournalOrderError as exc:
        raise damaged(place, str(exc), exc.turn.turn_id or None) from exc


def damaged(place: str, reason: str, turn_id: int | None = None) -> RetrievalError:
    """`turn_id` if a part of the turn can be kept."""
    return RetrievalError(f"the turn in {place} cannot be read: {reason}", hint=remedy(turn_id))


LAST = "last"
MAX_DIGITS = 15


@dataclass(frozen=True)
class TurnArchive:
    """Reads turns back from their store."""

    store: TurnStore

    async def load(self, turn_id: int) -> Turn | None:
        """None if there is no such turn. Raises RetrievalError for a damaged journal.

        A turn that seems to run while no process holds its lock is interrupted. Looking at one that
        is done or has not begun takes no lock, which would be in the way of its beginning.
        """
        store, place = self.store, self.store.place(turn_id)
        try:
            mark = await store.mark(turn_id)
            turn, _ = await read_turn(store, turn_id)
            if turn.status == "running" and turn.turn_id and not await store.is_held(turn_id):
                # It may have ended between reading the journal and testing its lock.
                if await store.mark(turn_id) != mark:
                    turn, _ = await read_turn(store, turn_id)
                if turn.status == "running":
                    turn = turn.interrupted()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise damaged(place, exc.strerror or str(exc)) from exc
        if turn.turn_id not in (0, turn_id):
            raise damaged(place, f"it is the journal of turn {turn.turn_id}")
        return turn if turn.turn_id else None  # killed before its first line

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
        return NoSuchTurnError(
            f"there is no turn {turn_id} in {self.store.place()}",
            hint="the turns: unified-flow turns list",
        )

    async def find(self, name: str) -> Turn | None:
        """A turn by its number or request id; `last` is the newest. Raises as `load` does, also
        for a newest one that is damaged: another must not be taken for it."""
        if name == LAST:
            for newest in reversed(await self.store.ids()):
                if (turn := await self.load(newest)) is not None:
                    return turn
            return None
        if name.isdecimal() and len(name) <= MAX_DIGITS:
            return await self.load(int(name))
        turn_id = await self._asked_as(name)
        return await self.load(turn_id) if turn_id is not None else None

    async def _asked_as(self, request_id: str) -> int | None:
        """The newest. Reads only the first line of each journal: a mistyped id must not cost
        reading every turn."""
        for turn_id in reversed(await self.store.ids()):
            with suppress(FileNotFoundError, RetrievalError):
                began = await self.store.first(turn_id)
                if began is not None and began.request_id == request_id:
                    return turn_id
        return None

    async def latest(self, limit: int | None, query: TurnQuery) -> tuple[list[Turn], list[str]]:
        """The newest turns, and what is wrong with those that cannot be read."""
        return await self.select(limit, query, lambda turn: turn)

    async def select(
        self, limit: int | None, query: TurnQuery, keep: Callable[[Turn], T]
    ) -> tuple[list[T], list[str]]:
        """`latest`, of which only what `keep` makes of each turn is kept in memory."""
        kept: list[T] = []
        damaged: list[str] = []
        for turn_id in reversed(await self.store.ids()):
            if limit is not None and len(kept) >= limit:
                break
            try:
                turn = await self.load(turn_id)
            except RetrievalError as exc:
                damaged.append(str(exc))
                continue
            # One whose number alone is taken is just being begun, or never was.
            if turn is None and await self._was_emptied(turn_id):
                damaged.append(str(await self.no_such_turn(turn_id)))
            if turn is not None and query.takes(turn):
                kept.append(keep(turn))
        return kept, damaged

    async def _was_emptied(self, turn_id: int) -> bool:
        """A power cut, or a hand: a journal without its first line that no process writes."""
        with suppress(OSError):
            mark = await self.store.mark(turn_id)
            return mark is not None and mark.size == 0 and not await self.store.is_held(turn_id)
        return False

    async def page(self, turn_id: int) -> str:
        """The turn for reading, from its journal: like `context.md`, for a killed turn too, and
        without the secrets that the structure of an output tells."""
        return "".join([markdown(event, clean=True) for event in await self.store.read(turn_id)])
