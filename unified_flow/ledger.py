"""The running turn, in memory and on disk, moved by one event at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from interventions.home import open_private
from unified_flow.document import markdown
from unified_flow.events import AnyEvent, TurnStarted
from unified_flow.journal import Journal
from unified_flow.turn import Turn, apply

Observer = Callable[[AnyEvent], None]
PAGE = "context.md"


class Ledger:
    """`record` appends to the journal first; only what is written has happened.

    Raises OSError, and keeps nothing open, if the folder cannot take the `first` event.
    """

    def __init__(
        self, folder: Path, observer: Observer | None = None, *, first: TurnStarted
    ) -> None:
        self.turn = Turn()
        self.folder = folder
        self._observer = observer
        with ExitStack() as opened:
            self._journal = Journal(folder)
            opened.callback(self._journal.close)
            self._page = open_private(folder / PAGE, os.O_WRONLY | os.O_APPEND)
            opened.callback(os.close, self._page)
            self.record(first)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    def record(self, event: AnyEvent) -> None:
        """Raises OSError if the journal cannot be written; the turn then stands as before."""
        self._journal.append(event)
        self.turn = apply(self.turn, event)
        if text := markdown(event):
            os.write(self._page, text.encode("utf-8", "replace"))
        if self._observer is not None:
            self._observer(event)
