"""A journal with a damaged line is kept up to it; the rest is set aside, never deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError, NotResumableError
from unified_flow.turns import blobs
from unified_flow.turns.archive import named_damage
from unified_flow.turns.events import AnyEvent, LostCall, TurnSalvaged, TurnStarted, now
from unified_flow.turns.fold import apply
from unified_flow.turns.journal import Journal, line_of, whole
from unified_flow.turns.lines import events_in
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.store import Salvaged
from unified_flow.turns.turn import Turn

_ACCESS = re.compile(rb'"access":\[([^\]]{0,100})\]')
_TOOL = re.compile(rb'"tool":"([^"\\\\]{1,200})"')
READING = frozenset({b'"reads"', b'"network"', b'"network","reads"'})


def salvaged(folder: Path, by: str) -> Salvaged:
    """Cut the journal in `folder` before its first damaged line.

    Raises NotResumableError where nothing is damaged, or nothing can be kept; JournalVersionError;
    BlockingIOError if somebody runs the turn, FileNotFoundError without a journal, and OSError if
    there is no room. Nothing has happened then.
    """
    held = Journal(folder, create=False)
    try:
        path = folder / JOURNAL
        *lines, torn = path.read_bytes().split(b"\n")
        kept, events = _intact(folder, lines)
        if kept == len(lines):
            raise NotResumableError(f"nothing in {path} is damaged")
        if not events:
            raise NotResumableError(
                f"nothing of the turn in {folder} can be kept: the first line is damaged",
                hint="ask its question again",
            )
        lost = lines[kept:]
        event = TurnSalvaged(
            by=by,
            aside=f"damaged_{now():%Y%m%dT%H%M%S.%f}.jsonl",
            lines=len(lost),
            calls=list(_begun_writes(lost, folder)),
        )
        blobs.put(folder / event.aside, b"\n".join([*lost, torn]))
        last = line_of(event, kept + 1, folder)
        blobs.put(path, b"".join(line + b"\n" for line in (*lines[:kept], last)))
    finally:
        held.close()
    turn = Turn()
    for each in (*events, event):
        turn = apply(turn, each)
    return Salvaged(turn, event, kept)


def _intact(folder: Path, lines: Sequence[bytes]) -> tuple[int, list[AnyEvent]]:
    """How many lines can be read, and can follow one another; and their events."""
    turn, found = Turn(), list[tuple[int, AnyEvent]]()
    try:
        for number, event in events_in(lines, folder / JOURNAL, partial(whole, folder)):
            if not found and not isinstance(event, TurnStarted):
                return 0, []
            with named_damage(str(folder), [e for _, e in found]):
                turn = apply(turn, event)
            found.append((number, event))
    except JournalVersionError:
        raise
    except RetrievalError:
        kept = found[-1][0] if found else 0
        return kept, [event for _, event in found]
    return len(lines), [event for _, event in found]


def _begun_writes(lines: Sequence[bytes], folder: Path) -> Iterator[LostCall]:
    """The calls that may have written. In a line that is damaged that is any call which does not
    say that it only reads."""
    for line in lines:
        access = _ACCESS.search(line)
        reads = access is not None and access[1] in READING
        called = b'"tool_started"' in line or b'"access":[' in line
        if b'"writes"' in line or (called and not reads):
            yield _call(line, folder)


def _call(line: bytes, folder: Path) -> LostCall:
    """The call whose beginning the line tells, as far as it can be read."""
    try:
        return LostCall.model_validate(whole(folder, json.loads(line)))
    except (ValueError, RecursionError, OSError, AttributeError):
        tool = _TOOL.search(line)
        return LostCall(call=-1, tool=tool[1].decode("utf-8", "replace") if tool else "a tool")
