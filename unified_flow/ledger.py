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
from unified_flow.events import (
    AnyEvent,
    PhaseFailed,
    TurnCompleted,
    TurnInterrupted,
    TurnStarted,
)
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
        self._unwritten: list[str] = []
        with ExitStack() as opened:
            self._journal = Journal(folder)
            opened.callback(self._journal.close)
            self.record(first)
            self.flush()
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

    def flush(self) -> None:
        """Before anything that takes time or acts: what was recorded so far is on disk."""
        self._journal.flush()

    def record(self, event: AnyEvent) -> None:
        """Raises OSError if the journal cannot be written; the turn then stands as before."""
        self._journal.append(event)
        self.turn = apply(self.turn, event)
        self._unwritten.append(markdown(event))
        if isinstance(event, PhaseFailed | TurnInterrupted | TurnCompleted):
            self._write_page()
        if self._observer is not None:
            self._observer(event)

    def _write_page(self) -> None:
        """Add to the page what happened since it was written, whenever the turn comes to a stop.

        Not after every phase: another file's dirty pages make each fsync of the journal dearer,
        by two fifths of the floor in benchmarks/turn.py. `archive.page` needs no page at all.
        """
        text = "".join(self._unwritten).encode("utf-8", "replace")
        self._unwritten.clear()
        descriptor = open_private(self.folder / PAGE, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, text)
        finally:
            os.close(descriptor)
