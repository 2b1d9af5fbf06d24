"""Where the turns of a home lie, and how a new one gets its number."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from interventions.home import PRIVATE_FOLDER_MODE, make_private_folder

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
