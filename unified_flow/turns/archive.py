"""The folders of turns: making one, and reading turns back from disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from interventions.home import PRIVATE_FOLDER_MODE, find_home, make_private_folder, state_folder
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NoSuchTurnError
from unified_flow.turns.context_page import markdown
from unified_flow.turns.events import AnyEvent, TurnResumed, TurnStarted
from unified_flow.turns.fold import JournalOrderError, UnknownValueError, fold
from unified_flow.turns.journal import NAME, begun, read
from unified_flow.turns.lines import other_version, remedy
from unified_flow.turns.lock import is_held
from unified_flow.turns.turn import Turn

FOLDER = re.compile(r"turn_[0-9]{6,15}")


class TurnFolders:
    """`turns/turn_000123` under a home. An id is taken by creating its folder.

    `known` tells the last id that is known elsewhere, so that the id of a turn whose folder was
    removed is not given to another.
    """

    def __init__(self, root: Path, known: Callable[[], int] = lambda: 0) -> None:
        self.root = root
        self._known = known
        self._last = 0

    def path(self, turn_id: int) -> Path:
        return self.root / f"turn_{turn_id:06d}"

    def ids(self) -> list[int]:
        """All turns on disk, oldest first."""
        if not self.root.exists():
            return []
        names = (entry.name for entry in os.scandir(self.root))
        return sorted(int(n[5:]) for n in names if FOLDER.fullmatch(n))

    def create(self) -> tuple[int, Path]:
        """A new folder with the next free id; safe among threads and processes."""
        make_private_folder(self.root)
        turn_id = self._last or max(self._known(), *self.ids(), 0)
        while True:
            turn_id += 1
            folder = self.path(turn_id)
            try:
                folder.mkdir(mode=PRIVATE_FOLDER_MODE)
            except FileExistsError:
                continue
            self._last = turn_id
            return turn_id, folder


def read_turn(folder: Path) -> tuple[Turn, list[AnyEvent]]:
    """The turn, and what happened in it; turn 0 for a journal without a whole line.

    Raises FileNotFoundError without a journal, and RetrievalError for one that is damaged. No lock
    is taken.
    """
    events = list(read(folder))
    if events and not isinstance(events[0], TurnStarted):
        raise damaged(folder, "its first line is missing")
    with named_damage(folder, events):
        return fold(events), events


@contextmanager
def named_damage(folder: Path, events: Sequence[AnyEvent]) -> Iterator[None]:
    """Lines that are whole, and that no turn can have written in this order, are damage, and the
    folder is named. Values that this program does not know are another version's."""
    try:
        yield
    except UnknownValueError as exc:
        wrote = [e.version for e in events if isinstance(e, TurnStarted | TurnResumed)]
        raise other_version(folder / NAME, str(exc), wrote[-1]) from exc
    except JournalOrderError as exc:
        raise damaged(folder, str(exc), exc.turn.turn_id or None) from exc


def damaged(folder: Path, reason: str, turn_id: int | None = None) -> RetrievalError:
    """`turn_id` if a part of the turn can be kept."""
    return RetrievalError(f"the turn in {folder} cannot be read: {reason}", hint=remedy(turn_id))


LAST = "last"
MAX_DIGITS = 15


@dataclass(frozen=True)
class TurnArchive:
    folders: TurnFolders

    @classmethod
    def of(cls, home: Path | str | None) -> Self:
        return cls(TurnFolders(state_folder(find_home(home)) / "turns"))

    def load(self, turn_id: int) -> Turn | None:
        """None if there is no such turn. Raises RetrievalError for a damaged journal.

        A turn that seems to run while no process holds its lock is interrupted. Looking at one that
        is done or has not begun takes no lock, which would be in the way of its beginning.
        """
        folder = self.folders.path(turn_id)
        try:
            size = (folder / NAME).stat().st_size
            turn, _ = read_turn(folder)
            if turn.status == "running" and turn.turn_id and not is_held(folder / NAME):
                # It may have ended between reading the journal and testing its lock.
                if (folder / NAME).stat().st_size != size:
                    turn, _ = read_turn(folder)
                if turn.status == "running":
                    turn = turn.interrupted()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise damaged(folder, exc.strerror or str(exc)) from exc
        if turn.turn_id not in (0, turn_id):
            raise damaged(folder, f"it is the journal of turn {turn.turn_id}")
        return turn if turn.turn_id else None  # killed before its first line

    def require(self, turn_id: int) -> Turn:
        """`load`. Raises NoSuchTurnError too."""
        turn = self.load(turn_id)
        if turn is None:
            raise self.no_such_turn(turn_id)
        return turn

    def no_such_turn(self, turn_id: int) -> NoSuchTurnError:
        folder = self.folders.path(turn_id)
        if folder.is_dir():
            return NoSuchTurnError(
                f"turn {turn_id} was never begun: there is nothing in its journal, {folder / NAME}",
                hint="ask its question again; unified-flow turns prune removes the folder",
            )
        return NoSuchTurnError(
            f"there is no turn {turn_id} in {self.folders.root}",
            hint="the turns: unified-flow turns list",
        )

    def find(self, name: str) -> Turn | None:
        """A turn by its number or request id; `last` is the newest. Raises as `load` does."""
        if name == LAST:
            turns, _ = self.latest(limit=1, session=None)
            return turns[0] if turns else None
        if name.isdecimal() and len(name) <= MAX_DIGITS:
            return self.load(int(name))
        return next((self.load(turn_id) for turn_id in self._asked_as(name)), None)

    def _asked_as(self, request_id: str) -> Iterator[int]:
        """Newest first. Reads only the first line of each journal: a mistyped id must not cost
        reading every turn."""
        for turn_id in reversed(self.folders.ids()):
            with suppress(FileNotFoundError, RetrievalError):
                began = begun(self.folders.path(turn_id))
                if began is not None and began.request_id == request_id:
                    yield turn_id

    def latest(
        self, limit: int | None, session: str | None, *, interrupted: bool = False
    ) -> tuple[list[Turn], list[str]]:
        """The newest turns, and what is wrong with those that cannot be read."""
        turns: list[Turn] = []
        damaged: list[str] = []
        for turn_id in reversed(self.folders.ids()):
            if limit is not None and len(turns) >= limit:
                break
            try:
                turn = self.load(turn_id)
            except RetrievalError as exc:
                damaged.append(str(exc))
                continue
            # A folder without a journal is a turn that is just being begun, or never was.
            if turn is None and self._was_emptied(turn_id):
                damaged.append(str(self.no_such_turn(turn_id)))
            if turn is None or session not in (None, turn.session_id):
                continue
            if turn.status == "interrupted" or not interrupted:
                turns.append(turn)
        return turns, damaged

    def _was_emptied(self, turn_id: int) -> bool:
        """A power cut, or a hand: a journal without its first line that no process writes."""
        journal = self.folders.path(turn_id) / NAME
        try:
            return journal.stat().st_size == 0 and not is_held(journal)
        except OSError:
            return False

    def page(self, turn_id: int) -> str:
        """The turn for reading, from its journal: like `context.md`, for a killed turn too, and
        without the secrets that the structure of an output tells."""
        return "".join(markdown(event, clean=True) for event in read(self.folders.path(turn_id)))
