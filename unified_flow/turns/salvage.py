"""A journal with a damaged line is kept up to it; the rest is set aside, never deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from interventions.home import replace_private, sync_folder
from interventions.times import utc_now
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError, NotResumableError
from unified_flow.turns.archive import named_damage
from unified_flow.turns.events import AnyEvent, TurnSalvaged, TurnStarted, Write
from unified_flow.turns.fold import apply
from unified_flow.turns.journal import Journal, line_of, whole
from unified_flow.turns.lines import events_in
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.turn import Turn

_ACCESS = re.compile(rb'"access":\[([^\]]{0,100})\]')
_TOOL = re.compile(rb'"tool":"([^"\\\\]{1,200})"')
READING = frozenset({b'"reads"', b'"network"', b'"network","reads"'})


def salvaged(folder: Path, by: str) -> tuple[int, TurnSalvaged]:
    """Cut the journal in `folder` before its first damaged line; `TurnStore.salvage`.

    Raises NotResumableError where nothing is damaged, or nothing can be kept; JournalVersionError;
    BlockingIOError if somebody runs the turn, FileNotFoundError without a journal, and OSError if
    there is no room. Nothing has happened then.
    """
    held = Journal(folder, create=False)
    try:
        path = folder / JOURNAL
        *lines, torn = path.read_bytes().split(b"\n")
        kept = _intact(folder, lines)
        if kept == len(lines):
            raise NotResumableError(f"nothing in {path} is damaged")
        if not kept:
            raise NotResumableError(
                f"nothing of the turn in {folder} can be kept: the first line is damaged",
                hint="ask its question again",
            )
        lost = lines[kept:]
        event = TurnSalvaged(
            by=by,
            aside=f"damaged_{utc_now():%Y%m%dT%H%M%S.%f}.jsonl",
            lines=len(lost),
            calls=list(_begun_writes(lost, folder)),
        )
        replace_private(folder / event.aside, b"\n".join([*lost, torn]))
        sync_folder(folder)
        last = line_of(event, kept + 1, folder)
        replace_private(path, b"".join(line + b"\n" for line in (*lines[:kept], last)))
        sync_folder(folder)
    finally:
        held.close()
    return kept, event


def _intact(folder: Path, lines: Sequence[bytes]) -> int:
    """How many lines can be read, and can follow one another."""
    turn, events, kept = Turn(), list[AnyEvent](), 0
    try:
        for number, event in events_in(lines, folder / JOURNAL, partial(whole, folder)):
            if not events and not isinstance(event, TurnStarted):
                return 0
            with named_damage(str(folder), events):
                turn = apply(turn, event)
            events.append(event)
            kept = number
    except JournalVersionError:
        raise
    except RetrievalError:
        return kept
    return len(lines)


def _begun_writes(lines: Sequence[bytes], folder: Path) -> Iterator[Write]:
    """The calls that may have written. In a line that is damaged that is any call which does not
    say that it only reads."""
    for line in lines:
        access = _ACCESS.search(line)
        reads = access is not None and access[1] in READING
        called = b'"tool_started"' in line or b'"access":[' in line
        if b'"writes"' in line or (called and not reads):
            yield _call(line, folder)


def _call(line: bytes, folder: Path) -> Write:
    """The call whose beginning the line tells, as far as it can be read."""
    try:
        return Write.model_validate(whole(folder, json.loads(line)))
    except (ValueError, RecursionError, OSError, AttributeError):
        tool = _TOOL.search(line)
        return Write(call=-1, tool=tool[1].decode("utf-8", "replace") if tool else "a tool")
