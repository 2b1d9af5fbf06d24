"""What the tabs beside the open list show. Reading only; each is called on a worker's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from interventions.entry import Entry, closed_at
from interventions.errors import NoResumerError, NotFoundError, QueueError
from interventions.home import error_log
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.retry.entry_points import LiveTurn, TurnReader, find_turn_reader
from interventions.secrets.redaction import redact_text
from interventions.storage.jsonl import lines, parse_line
from interventions.trends import Trends, Window
from monitor.core.looked import Look
from monitor.core.snapshot import Clock, Pulse
from monitor.core.source import Source

MOST_TURNS = 100
MOST_LINES = 500
_MOST_LOG_BYTES = 4_000_000


@dataclass(frozen=True)
class Feed:
    """What was read for one tab; `problem` says why there is nothing. A line of the log is (its
    key, the record)."""

    tab: str
    history: Sequence[Entry] = ()
    turns: Sequence[LiveTurn] = ()
    log: Sequence[tuple[str, dict[str, Any]]] = ()
    trends: Trends | None = None
    problem: str = ""


def feed_reader(
    tab: str,
    source: Source,
    clock: Clock,
    window: Window = Window.DAY,
    turns: Sequence[int] = (),
) -> Callable[[], Feed]:
    """Reads the tab anew at every call; trends over this window, and these turns, however old.
    Nothing is raised: what is wrong is in the feed."""
    if tab == "history":
        return _on_change(tab, source, lambda: Feed(tab, history=source.history()))
    queue = source.queue
    if queue is None:
        return lambda: Feed(tab, problem="This is not part of an exported file.")
    if tab == "trends":
        return _on_change(tab, source, lambda: Feed(tab, trends=queue.trends(window, clock())))
    if tab == "turns":
        return _turns_reader(source, turns)
    return _log_reader(LogTail(source.home, clock))


def _on_change(tab: str, source: Source, make: Callable[[], Feed]) -> Callable[[], Feed]:
    stamp: object = ...
    last = Feed(tab)

    def read() -> Feed:
        nonlocal stamp, last
        before, stamp = stamp, source.stamp()
        if stamp != before:
            try:
                last = make()
            except QueueError as error:
                last = replace(last, problem=f"{error}\n\n{error.hint}")
        return last

    return read


def pulse_reader(source: Source, look: Look, clock: Clock) -> Callable[[], Pulse]:
    """What costs more than the queue: figures of its logs, and of the turns from the second call
    on, since what reads turns may take a while to load."""
    turns, queue = _turns_reader(source), source.queue
    stamp: object = None
    last = Pulse()

    def read() -> Pulse:
        nonlocal last, stamp
        if queue is None:
            return last
        is_first, before, stamp = stamp is None, stamp, source.stamp()
        with suppress(QueueError, OSError):  # the list says what is the matter with the queue
            if stamp != before:
                steps = queue.trends(Window.HOUR, clock())["by_severity"].values()
                last = replace(last, failures=tuple(map(sum, zip(*steps, strict=True))))
            if is_first and look.at:
                last = replace(last, closed_by=tuple(_closed_by(queue, look.at)))
        if not is_first:
            cut_off = [one for one in turns().turns if one["status"] == "interrupted"]
            last = replace(last, interrupted=len(cut_off))
        return last

    return read


def _closed_by(queue: InterventionQueue, since: str) -> Iterator[str]:
    """Who closed the entries that were closed since then, for each of them."""
    for entry in takewhile(lambda entry: closed_at(entry) > since, queue.closed()):
        yield str((entry["resolutions"] or [{}])[-1].get("by") or "somebody")


def _turns_reader(source: Source, wanted: Sequence[int] = ()) -> Callable[[], Feed]:
    reader: TurnReader | None = None

    def read() -> Feed:
        nonlocal reader
        try:
            reader = reader or find_turn_reader()
            turns = list(reader.latest(source.home, MOST_TURNS))
            older = set(wanted) - {turn["turn_id"] for turn in turns}
            turns += filter(None, (reader.turn(source.home, each) for each in sorted(older)))
            return Feed("turns", turns=[redacted(turn) for turn in turns])
        except NoResumerError as error:
            return Feed("turns", problem=f"{error}\n\n{error.hint}")
        except Exception as error:  # noqa: BLE001 - a foreign reader; only its tab is without it
            why = one_line(redact_text(f"{type(error).__name__}: {error}"))
            return Feed("turns", problem=f"what reads turns failed: {why}")

    return read


def changes_since(home: Path, turn_id: int) -> tuple[str, ...]:
    """What differs now from that on which the turn stopped; empty where there is no such turn, or
    none can be read."""
    try:
        compare = getattr(find_turn_reader(), "changes", None)
        if compare is None:
            return ()
        found = compare(home, turn_id)
    except (NoResumerError, NotFoundError):
        return ()
    except Exception as error:  # noqa: BLE001 - a foreign reader
        return (one_line(redact_text(f"not known: {error}")),)
    return tuple(one_line(redact_text(line)) for line in found) or ("nothing that is known",)


def redacted(turn: LiveTurn) -> LiveTurn:
    """A journal keeps questions and errors as they were; on a screen they are redacted."""
    private = turn.keys() & {"question", "doing", "error"}
    clean = {name: _redacted(str(turn.get(name) or "")) for name in private}
    return cast(LiveTurn, {**turn, **clean})


# The same turns are read again several times a second.
_redacted = lru_cache(1000)(redact_text)


def _log_reader(tail: LogTail) -> Callable[[], Feed]:
    def read() -> Feed:
        try:
            return Feed("log", log=tail.read())
        except OSError as error:
            return Feed("log", problem=f"cannot read {error.filename}: {error.strerror}")

    return read


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
