"""What the tabs beside the open list show. Reading only; each is called on a worker's thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from interventions.entry import Entry
from interventions.errors import NoResumerError, QueueError
from interventions.retry.turns import LiveTurn, TurnReader, find_turn_reader
from interventions.secrets.redaction import redact_text
from interventions.view.plaintext import one_line
from monitor.core.logtail import LogTail
from monitor.core.source import Clock, Source

MOST_TURNS = 100


@dataclass(frozen=True)
class Feed:
    """What was read for one tab; `problem` says why there is nothing."""

    tab: str
    history: Sequence[Entry] = ()
    turns: Sequence[LiveTurn] = ()
    log: Sequence[tuple[str, dict[str, Any]]] = field(default_factory=tuple)
    problem: str = ""


def reader_of(tab: str, source: Source, clock: Clock) -> Callable[[], Feed]:
    """Reads the tab anew at every call. Nothing is raised: what is wrong is in the feed."""
    if tab == "history":
        return _history(source)
    if source.queue is None:
        return lambda: Feed(tab, problem="This is not part of an exported file.")
    if tab == "turns":
        return _turns(source)
    tail = LogTail(source.home, clock)
    return lambda: _log(tail)


def _history(source: Source) -> Callable[[], Feed]:
    last: tuple[object, Feed] = (..., Feed("history"))

    def read() -> Feed:
        nonlocal last
        mark = source.mark()
        if mark != last[0]:
            last = (mark, _history_now(source))
        return last[1]

    return read


def _history_now(source: Source) -> Feed:
    try:
        return Feed("history", history=source.history())
    except QueueError as error:
        return Feed("history", problem=f"{error}\n\n{error.hint}")


def _turns(source: Source) -> Callable[[], Feed]:
    found: list[TurnReader] = []

    def read() -> Feed:
        try:
            if not found:
                found.append(find_turn_reader())
            turns = found[0].latest(source.home, MOST_TURNS)
            return Feed("turns", turns=[redacted(turn) for turn in turns])
        except NoResumerError as error:
            return Feed("turns", problem=f"{error}\n\n{error.hint}")
        except Exception as error:  # noqa: BLE001 - a foreign reader; its tab alone is without it
            why = one_line(redact_text(f"{type(error).__name__}: {error}"))
            return Feed("turns", problem=f"what reads turns failed: {why}")

    return read


def redacted(turn: LiveTurn) -> LiveTurn:
    """A journal keeps what was asked as it was; on a screen it is redacted like all else."""
    shown = turn.copy()
    if "question" in turn:
        shown["question"] = _redacted(turn["question"] or "")
    if "doing" in turn:
        shown["doing"] = _redacted(turn["doing"] or "")
    if "error" in turn:
        shown["error"] = _redacted(turn["error"] or "")
    return shown


# The same turns are read again several times a second.
_redacted = lru_cache(1000)(redact_text)


def _log(tail: LogTail) -> Feed:
    try:
        return Feed("log", log=tail.read())
    except OSError as error:
        return Feed("log", problem=f"cannot read {error.filename}: {error.strerror}")
