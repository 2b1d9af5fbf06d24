"""What is read again and again: the queue, what the other tabs show, and the figures of the header.
Reading only; each reader is called in a thread."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar, cast

from interventions.entry import closed_at
from interventions.errors import NoResumerError, NotFoundError, QueueError
from interventions.health import Trends, Window
from interventions.home import error_log
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.retry.contract import LiveTurn, TurnReader, find_turn_reader
from interventions.secrets.redaction import redact_text
from interventions.storage.jsonl import lines, parse_line
from interventions.view.groups import single
from monitor.core.looked import Look
from monitor.core.source import Clock, Pulse, Source

MOST_TURNS = 100
MOST_LINES = 500
_MOST_LOG_BYTES = 4_000_000
# After a change, of which there may be twenty a second: each costs the keys a few milliseconds.
_REST_S = 0.2
_REST_FACTOR, _LONGEST_REST_S = 20, 2.0
Found = TypeVar("Found")


async def follow(
    read: Callable[[], Found], show: Callable[[Found], object], pause_s: float
) -> None:
    """Shows what is read whenever it differs from the last, and rests after that, the longer the
    more of the processor the reading took: keys come first. It has a thread of its own: each that
    reads a long past keeps memory for it."""
    thread, last = ThreadPoolExecutor(1), None

    def look() -> tuple[Found, bool, float]:
        began_s = time.thread_time()
        found = read()
        return found, found != last, time.thread_time() - began_s

    try:
        while True:
            found, changed, took_s = await asyncio.get_running_loop().run_in_executor(thread, look)
            last = found
            if changed:
                show(found)
            rest_s = max(_REST_S if changed else 0, min(took_s * _REST_FACTOR, _LONGEST_REST_S))
            await asyncio.sleep(max(pause_s, rest_s))
    finally:
        thread.shutdown(wait=False)


def whenever(differs: Callable[[], object], read: Callable[[], Found]) -> Callable[[], Found]:
    """What was read last, until `differs` gives something else than before."""
    of_stamp = lru_cache(1)(lambda stamp: read())
    return lambda: of_stamp(differs())


@dataclass(frozen=True)
class Feed:
    """What was read for one tab: closed entries, each a group of its own, turns, lines of the log
    as (key, record), or the causes in `trends`. `problem` says why there is nothing."""

    tab: str
    found: Sequence[Any] = ()
    trends: Trends | None = None
    problem: str = ""


def feed_reader(
    tab: str, source: Source, clock: Clock, window: Window = Window.DAY, turns: Sequence[int] = ()
) -> Callable[[], Feed]:
    """Reads the tab anew at every call; trends over this window, and these turns, however old.
    Nothing is raised: what is wrong is in the feed."""
    queue, home = source.queue, source.home
    if tab == "open":
        return lambda: Feed(tab)  # they come with the queue itself
    if tab == "history":
        return whenever(source.stamp, _kept(tab, lambda: Feed(tab, single(source.history()))))
    if queue is None:
        return lambda: Feed(tab, problem="This is not part of an exported file.")
    if tab == "trends":

        def read_trends() -> Feed:
            trends = queue.trends(window, clock())
            return Feed(tab, trends["causes"], trends)

        return whenever(source.stamp, _kept(tab, read_trends))
    if tab == "turns":
        find = cache(find_turn_reader)
        return _kept(tab, lambda: Feed(tab, _turns(find(), home, turns)))
    tail = LogTail(home, clock)
    return _kept(tab, lambda: Feed(tab, tail.read()))


def _kept(tab: str, read: Callable[[], Feed]) -> Callable[[], Feed]:
    """What cannot be read stays as it was last read."""
    last = Feed(tab)

    def read_or_keep() -> Feed:
        nonlocal last
        try:
            last = read()
        except QueueError as error:
            last = replace(last, problem=f"{error}\n\n{error.hint}")
        except OSError as error:
            last = replace(last, problem=f"cannot read {error.filename}: {error.strerror}")
        return last

    return read_or_keep


def _turns(reader: TurnReader, home: Path, wanted: Sequence[int]) -> list[LiveTurn]:
    try:
        found = list(reader.latest(home, MOST_TURNS))
        older = set(wanted) - {turn["turn_id"] for turn in found}
        found += filter(None, (reader.turn(home, each) for each in sorted(older)))
    except Exception as error:  # a foreign reader; only its tab is without it
        raise QueueError(f"what reads turns failed: {foreign_error(error)}") from error
    return [redacted(turn) for turn in found]


def pulse_reader(source: Source, look: Look, clock: Clock) -> Callable[[], Pulse]:
    """What costs more than the queue: figures of its logs, and of the turns from the second call
    on, since what reads turns may take a while to load."""
    trends = feed_reader("trends", source, clock, Window.HOUR)
    turns = feed_reader("turns", source, clock)
    last: Pulse | None = None

    def read() -> Pulse:
        nonlocal last
        found = trends().trends
        steps = found["by_severity"].values() if found else ()
        failures = tuple(map(sum, zip(*steps, strict=True)))
        if last is None:
            last = Pulse(failures, closed_by=_closed_by(source.queue, look.at))
        else:
            cut_off = [turn for turn in turns().found if turn["status"] == "interrupted"]
            last = replace(last, failures=failures, interrupted=len(cut_off))
        return last

    return read


def _closed_by(queue: InterventionQueue | None, since: str) -> list[str]:
    """Who closed the entries that were closed since then, for each of them."""
    if queue is None or not since:
        return []
    try:
        closed = list(takewhile(lambda entry: closed_at(entry) > since, queue.closed()))
    except (QueueError, OSError):
        return []  # the list says what is the matter with the queue
    return [str((entry["resolutions"] or [{}])[-1].get("by") or "somebody") for entry in closed]


def changes_since(home: Path, turn_id: int) -> tuple[str, ...]:
    """What differs now from that on which the turn stopped; empty where there is no such turn, or
    none can be read."""
    try:
        found = find_turn_reader().changes(home, turn_id)
    except (NoResumerError, NotFoundError):
        return ()
    except Exception as error:  # noqa: BLE001 - a foreign reader
        return (f"not known: {foreign_error(error)}",)
    return tuple(one_line(redact_text(line)) for line in found) or ("nothing that is recorded",)


def foreign_error(error: Exception) -> str:
    """An error of code that is not ours, redacted: it may hold anything."""
    return one_line(redact_text(f"{type(error).__name__}: {error}"))


def redacted(turn: LiveTurn) -> LiveTurn:
    """A journal keeps questions and errors as they were; on a screen they are redacted."""
    private = turn.keys() & {"question", "doing", "error"}
    clean = {name: _redacted(str(turn.get(name) or "")) for name in private}
    return cast(LiveTurn, {**turn, **clean})


# The same turns are read again several times a second.
_redacted = lru_cache(1000)(redact_text)


class LogTail:
    """The end of today's error log; a new day begins a new file."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._path: Path | None = None
        self._read_to = 0
        self._lines: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MOST_LINES)

    def read(self) -> list[tuple[str, dict[str, Any]]]:
        """(key, record) of the latest lines, the newest first. Raises OSError."""
        path = error_log(self._home, self._clock().date())
        size = path.stat().st_size if path.exists() else 0
        if path != self._path or size < self._read_to:
            self._path, self._read_to = path, max(size - _MOST_LOG_BYTES, 0)
        for offset, line in lines(path, self._read_to) if size > self._read_to else ():
            self._read_to = offset + len(line) + 1
            record = parse_line(line)
            if record is not None:
                self._lines.appendleft((f"{path.name}:{offset}", record))
        return list(self._lines)
