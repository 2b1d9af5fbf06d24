"""The running turn, in memory and on disk, moved by one event at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from interventions.home import open_private
from unified_flow.turns.archive import read_turn
from unified_flow.turns.context_page import markdown
from unified_flow.turns.events import (
    AnyEvent,
    GuardrailChecked,
    HistoryRead,
    Observed,
    PhaseFailed,
    TurnAbandoned,
    TurnCompleted,
    TurnInterrupted,
    TurnResumed,
    TurnStarted,
)
from unified_flow.turns.fold import apply
from unified_flow.turns.journal import Journal
from unified_flow.turns.turn import Turn

logger = logging.getLogger(__name__)

Observer = Callable[[Observed], None]
PAGE = "context.md"
STOPS = (PhaseFailed, TurnInterrupted, TurnCompleted, TurnAbandoned)


class Ledger:
    """`record` writes an event to the journal first; only what the journal takes has happened.

    With `first` a turn begins; without, the one on disk is opened, and `begin` lets it go on.
    Raises BlockingIOError if another process runs the turn, FileNotFoundError if there is none,
    RetrievalError if its journal is damaged, and OSError if the folder cannot take the event;
    nothing stays open then.
    """

    def __init__(
        self,
        folder: Path,
        observer: Observer | None = None,
        *,
        first: TurnStarted | None = None,
    ) -> None:
        self.turn = Turn()
        self.folder = folder
        self._observer = observer
        self.events: list[AnyEvent] = []
        with ExitStack() as opened:
            self._journal = Journal(folder, create=first is not None)
            opened.callback(self._journal.close)
            if first is None:
                self.turn, self.events = read_turn(folder)
            else:
                self.begin(first)
            self._opened = opened.pop_all()

    def begin(self, event: TurnStarted | TurnResumed | TurnAbandoned) -> None:
        """Record the event with which a run begins. Raises OSError; then it has not happened, and
        observers do not see it."""
        self._journal.append(event)
        try:
            self.flush()
        except OSError:
            self._journal.drop()
            raise
        self._took(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.turn.persist and not self.turn.waits:
            self._journal.drop()
        self.close()

    def close(self) -> None:
        """Let others have the turn."""
        self._opened.close()

    def flush(self) -> None:
        """Put what was recorded so far on disk."""
        self._journal.flush()

    def checkpoint(self) -> None:
        """Flush before anything that takes time or acts. A turn that is not kept is neither resumed
        nor watched unless it fails; then all of it is written."""
        if self.turn.persist:
            self.flush()

    def record(self, event: AnyEvent) -> None:
        """Raises OSError if the journal cannot be written; the turn then stands as before."""
        self._journal.append(event)
        self._took(event)

    def record_always(self, event: PhaseFailed | GuardrailChecked | HistoryRead) -> None:
        """Record an event even if the journal cannot take it: a failure or a check must not depend
        on the disk. The next phase meets the full disk itself."""
        try:
            self._journal.append(event)
        except OSError as exc:
            logger.critical("the journal in %s cannot be written: %s", self.folder, exc)
        self._took(event)

    def _took(self, event: AnyEvent) -> None:
        self.turn = apply(self.turn, event)
        self.events.append(event)
        if isinstance(event, STOPS) and (self.turn.persist or self.turn.status == "failed"):
            self._write_page()
        self.show(event)

    @property
    def watched(self) -> bool:
        return self._observer is not None

    def show(self, event: Observed) -> None:
        """Give the observer an event, recorded or for observers alone."""
        if self._observer is None:
            return
        try:
            self._observer(event)
        except Exception as exc:  # noqa: BLE001 - an observer's error is not the turn's
            logger.warning("the observer of turn %s failed: %r", self.turn.turn_id, exc)
            self._observer = None

    def _write_page(self) -> None:
        """The page, whole, whenever the turn stops: it may lack the events before a kill.

        Not after every phase: another file's dirty pages make each fsync of the journal dearer,
        by two fifths of the floor in benchmarks/turn.py. `archive.page` needs no page at all.
        """
        text = "".join(map(markdown, self.events)).encode("utf-8", "replace")
        try:
            descriptor = open_private(self.folder / PAGE, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, text)
            finally:
                os.close(descriptor)
        except OSError as exc:
            # The page only repeats the journal; it must not cost the turn its answer.
            logger.warning("the page in %s cannot be written: %s", self.folder, exc)
