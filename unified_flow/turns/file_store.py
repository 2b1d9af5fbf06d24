"""Turns in files: `turns/turn_000123` under a home, each with its journal (`journal.py`); of a turn
that is not kept `running/123`, while it runs."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.home import (
    PRIVATE_FOLDER_MODE,
    create_private,
    make_private_folder,
)
from unified_flow.lib.threads import FewThreads, Job, QuickWork, to_the_end
from unified_flow.turns import blobs
from unified_flow.turns.lock import JOURNAL, PRUNED, is_held, remove_unused, sole_user
from unified_flow.turns.store import Delivery, TurnLease, TurnMark, TurnStore

if TYPE_CHECKING:  # and late: a list of turns reads their index alone
    from unified_flow.turns.events import AnyEvent, TurnSalvaged, TurnStarted

FOLDER, MARK = re.compile(r"turn_([0-9]{6,15})"), re.compile(r"([0-9]+)")
# To read so much takes less than a millisecond.
READ_AT_ONCE_BYTES = 16 * 1024
WRITES_AVERAGED = 64
BEGINNINGS_AVERAGED = 8  # few disks wait for them: they are averaged on their own
WRITERS = 16  # several turns' writes also share one commit of the file system


class FileTurnStore(TurnStore):
    """An id is taken by creating its folder, or its file among the turns that run.

    `known` tells the last id that is known elsewhere, so that the id of a turn whose folder was
    removed is not given to another.
    """

    def __init__(self, root: Path, known: Callable[[], int] = lambda: 0) -> None:
        self._root = root
        self._deliveries = root.with_name("deliveries")
        self._running = root.with_name("running")
        self._known = known
        self._last = 0
        self._threads = FewThreads(WRITERS, "journal")
        self._writes = QuickWork(self._on_disk, averaged=WRITES_AVERAGED, expected=2)
        self._beginnings = QuickWork(self._on_disk, averaged=BEGINNINGS_AVERAGED, expected=0)

    async def _on_disk(self, work: Job) -> Any:
        return await to_the_end(self._threads.run(work))

    def place(self, turn_id: int | None = None) -> str:
        return str(self._root if turn_id is None else self._folder(turn_id))

    def files(self, turn_id: int) -> Path:
        return self._folder(turn_id) / "files"

    def _folder(self, turn_id: int) -> Path:
        return self._root / f"turn_{turn_id:06d}"

    def _without_folder(self, turn_id: int) -> Path | None:
        """The file of a turn that is not kept, while that is all there is of it."""
        file, journal = self._running / str(turn_id), self._folder(turn_id) / JOURNAL
        return file if file.exists() and not journal.exists() else None

    async def create(self, *, kept: bool = True) -> TurnLease:
        if not self._last:
            last = await asyncio.to_thread(lambda: max(self._known(), *self._ids(), 0))
            self._last = max(self._last, last)
        return await self._beginnings.run(partial(self._begun, kept=kept))

    def _begun(self, *, kept: bool) -> TurnLease:
        while True:
            make_private_folder(self._root)
            turn_id = self._last = self._last + 1
            folder, mark = self._folder(turn_id), self._running / str(turn_id)
            # A file is not there any more if it was taken for one that a process has left.
            with suppress(FileExistsError, FileNotFoundError):
                if not kept:
                    return self._leased(turn_id, create=True, at=mark)
                folder.mkdir(mode=PRIVATE_FOLDER_MODE)
                try:
                    if mark.exists():  # one that is not kept has the number
                        raise FileExistsError
                    return self._leased(turn_id, create=True)
                except OSError:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise

    async def open(self, turn_id: int) -> TurnLease:
        return await to_the_end(asyncio.to_thread(self._leased, turn_id, create=False))

    def _leased(self, turn_id: int, *, create: bool, at: Path | None = None) -> TurnLease:
        """A lease with a mark among the turns that run, until it is released: a link to the
        journal, since a file of its own makes each fsync dearer. `at` that place is the journal
        itself of a turn that is not kept."""
        from unified_flow.turns.journal import Journal, JournalLease

        folder = self._folder(turn_id)
        if not create:
            self._settle_if_left(turn_id)
        journal = Journal(folder, create=create, at=at)
        if at is not None and folder.exists():  # one that is kept has the number
            at.unlink()
            journal.close()
            raise FileExistsError
        mark = at or self._running / str(turn_id)
        try:
            if at is None:
                os.link(journal.path, mark)
        except OSError:  # there is no such folder yet, or there are no links here
            with suppress(OSError):  # the disk is full: `turns recover` reads all turns
                create_private(mark)
        on_disk = self._writes.run
        return JournalLease(turn_id, journal, mark, on_disk, kept=at is None, large=not create)

    def _settle_if_left(self, turn_id: int) -> None:
        """Give a turn without a folder one if its process died, or remove it if it never began.
        Raises OSError, BlockingIOError if somebody runs it."""
        from unified_flow.turns.journal import settle

        if (file := self._without_folder(turn_id)) is None:
            return
        if is_held(file):
            raise BlockingIOError(11, "somebody runs the turn", str(file))
        if file.stat().st_size:
            settle(file, self._folder(turn_id))
        else:
            file.unlink()

    @asynccontextmanager
    async def delivery(self, message: str) -> AsyncIterator[Delivery]:
        path = self._deliveries / sha256(message.encode()).hexdigest()
        async with AsyncExitStack() as alone:
            delivery = Delivery(None)
            # Where nothing can be written no turn can begin, which says why.
            with suppress(OSError):
                file = await alone.enter_async_context(sole_user(path))
                said = os.pread(file, 20, 0)
                begun = int(said) if said.isdigit() else None
                delivery = Delivery(begun, partial(_note, file))
            yield delivery

    async def read(self, turn_id: int) -> list[AnyEvent]:
        from unified_flow.turns.journal import read

        folder, at = self._folder(turn_id), self._without_folder(turn_id)
        if (at or folder / JOURNAL).stat().st_size <= READ_AT_ONCE_BYTES:
            return list(read(folder, at=at))
        return await asyncio.to_thread(lambda: list(read(folder)))

    async def first(self, turn_id: int) -> TurnStarted | None:
        from unified_flow.turns.journal import read

        at = self._without_folder(turn_id)
        first = next(read(self._folder(turn_id), first=True, at=at), None)
        return first if first is not None and first.event == "turn_started" else None

    async def ids(self) -> list[int]:
        return await asyncio.to_thread(self._ids)

    def _ids(self) -> list[int]:
        running = _numbers(self._running, MARK)
        begun = [each for each in running if (mark := self._mark(each)) is not None and mark.size]
        return sorted({*_numbers(self._root, FOLDER), *begun})

    async def mark(self, turn_id: int) -> TurnMark | None:
        return self._mark(turn_id)

    def _mark(self, turn_id: int) -> TurnMark | None:
        folder = f"{self._root}/turn_{turn_id:06d}"  # a Path would double the cost of a list
        with suppress(FileNotFoundError, NotADirectoryError):
            try:
                found = os.stat(f"{folder}/{JOURNAL}")  # noqa: PTH116
            except FileNotFoundError:
                if (file := self._without_folder(turn_id)) is None:
                    return TurnMark(None, os.stat(folder).st_mtime_ns)  # noqa: PTH116
                found = file.stat()
            return TurnMark(found.st_size, found.st_mtime_ns)
        return None

    async def marks(self) -> dict[int, TurnMark]:
        def look() -> dict[int, TurnMark]:
            return {n: mark for n in self._ids() if (mark := self._mark(n)) is not None}

        return await asyncio.to_thread(look)

    async def sizes(self) -> dict[int, int]:
        def look() -> dict[int, int]:
            sizes = dict.fromkeys(self._ids(), 0)
            for turn_id in sizes:
                with suppress(FileNotFoundError), os.scandir(self._folder(turn_id)) as files:
                    sizes[turn_id] = sum(file.stat().st_size for file in files)
            return sizes

        return await asyncio.to_thread(look)

    async def is_held(self, turn_id: int) -> bool:
        return self._is_held(turn_id)

    def _is_held(self, turn_id: int) -> bool:
        with suppress(FileNotFoundError):
            return is_held(self._without_folder(turn_id) or self._folder(turn_id) / JOURNAL)
        return False

    async def unreleased(self) -> list[int]:
        def look() -> list[int]:
            found = [each for each in _numbers(self._running, MARK) if not self._is_held(each)]
            for turn_id in found:
                with suppress(OSError):  # it runs again, or is gone; or there is no room
                    self._settle_if_left(turn_id)
            return [each for each in found if self._folder(each).exists()]

        return await asyncio.to_thread(look)

    async def salvage(self, turn_id: int, by: str) -> tuple[int, TurnSalvaged]:
        from unified_flow.turns.salvage import salvaged

        return await to_the_end(asyncio.to_thread(salvaged, self._folder(turn_id), by))

    async def sweep(self, before: datetime | None) -> None:
        def remove() -> None:
            if before is not None:
                for turn_id in _numbers(self._root, FOLDER)[:-1]:
                    with suppress(OSError):
                        self._remove_if_never_begun(turn_id, before)
                for path in self._deliveries.glob("*"):
                    with suppress(OSError):
                        remove_unused(path, before.timestamp())
            for left in self._root.glob(f"{PRUNED}*"):
                shutil.rmtree(left, ignore_errors=True)  # two may be at it

        await asyncio.to_thread(remove)

    def _remove_if_never_begun(self, turn_id: int, before: datetime) -> None:
        """A process that dies between taking a number and writing the first line leaves a folder
        without a turn, and perhaps large values of that line. Raises OSError for one that holds
        anything else, and for one that is gone."""
        from unified_flow.turns.journal import Journal

        folder = self._folder(turn_id)
        if folder.stat().st_mtime >= before.timestamp():
            return
        if (folder / JOURNAL).exists():
            held = Journal(folder, create=False)
            try:
                if (folder / JOURNAL).stat().st_size == 0:
                    (folder / JOURNAL).unlink()
            finally:
                held.close()
        if not (folder / JOURNAL).exists():
            blobs.remove_all(folder)
        folder.rmdir()


def _numbers(folder: Path, names: re.Pattern[str]) -> list[int]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return sorted(int(found[1]) for e in entries if (found := names.fullmatch(e.name)))
    return []


def _note(descriptor: int, turn_id: int) -> None:
    with suppress(OSError):  # then another process begins a turn of its own
        os.pwrite(descriptor, b"%d" % turn_id, 0)
