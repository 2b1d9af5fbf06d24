"""In which state a form is, and what makes another of it. Pure.

Editing ── begin ──> Working ── came ──> Closed, or Refused if there is something to be read
Refused ── begin ──> Working ── cancel ──> Working(stopping) ── cancel ──> Closed(left)
Editing, Refused ── cancel ──> Closed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from interventions.entry import Entry

Done = tuple[Entry, ...]


@dataclass(frozen=True)
class Editing:
    """Nothing was tried yet."""


@dataclass(frozen=True)
class Working:
    """Nothing can be typed. `done` are the entries of earlier tries; `stopping`: no further one is
    begun."""

    done: Done = ()
    stopping: bool = False


@dataclass(frozen=True)
class Refused:
    """Not all of it came to pass. `newer` are entries by id as somebody else has changed them, with
    which one can go on all the same."""

    done: Done = ()
    newer: Mapping[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True)
class Closed:
    """`left`: it worked still, and what comes of that is told elsewhere."""

    done: Done = ()
    left: bool = False


State = Editing | Working | Refused | Closed


def done(state: State) -> Done:
    return () if isinstance(state, Editing) else state.done


def stopping(state: State) -> bool:
    return isinstance(state, Closed) or (isinstance(state, Working) and state.stopping)


def begin(state: Editing | Refused) -> Working:
    return Working(done(state))


def cancel(state: State) -> State:
    """While it works: begin no further one; once more: leave it to end by itself."""
    match state:
        case Editing() | Refused():
            return Closed(done(state))
        case Working(stopping=False):
            return replace(state, stopping=True)
        case Working():
            return Closed(state.done, left=True)
        case Closed():
            return state
    assert_never(state)


def came(
    state: State, now_done: Sequence[Entry], *, well: bool, newer: Mapping[str, Entry]
) -> Closed | Refused:
    """The work is over; `well`: with nothing left to be read or tried."""
    if isinstance(state, Closed):  # it was left; what came of it is told elsewhere
        return state
    both = {entry["id"]: entry for entry in (*done(state), *now_done)}
    everything = tuple(both.values())
    return Closed(everything) if well else Refused(everything, newer)
