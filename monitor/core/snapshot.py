"""What the monitor shows at one moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from interventions.entry import Entry, Transition, is_open
from interventions.health import Health

Clock = Callable[[], datetime]


class TroubleKind(StrEnum):
    """Why there is no queue to show, or not all of it; each has its own words on the screen."""

    FIRST_RUN = "first run"
    VANISHED = "gone"
    CORRUPT = "corrupt"
    STORAGE = "unreadable"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class Trouble:
    """`what` is the matter and `todo` is what a person does about it."""

    kind: TroubleKind
    what: str
    todo: str


@dataclass(frozen=True)
class Snapshot:
    """`read_only` says why nothing can be changed, `locked` which process keeps the queue locked.
    `of_all_states`: closed entries belong in the list too, as in an exported file."""

    taken_at: datetime
    entries: tuple[Entry, ...] = ()
    health: Health | None = None
    trouble: Trouble | None = None
    read_only: str = ""
    locked: str = ""
    of_all_states: bool = False

    @property
    def open_entries(self) -> list[Entry]:
        return [entry for entry in self.entries if is_open(entry)]


@dataclass(frozen=True)
class Pulse:
    """What the header says beside the queue: `failures` of the last hour in steps of it, how many
    turns are interrupted, and by whom entries were closed since the person's last look."""

    failures: Sequence[int] = ()
    interrupted: int = 0
    closed_by: Sequence[str] = ()


@dataclass(frozen=True)
class Background:
    """What other files hold about one entry: past resolutions, who did what, and what has changed
    since its turn stopped."""

    past: tuple[Entry, ...] = ()
    journal: tuple[Transition, ...] = ()
    changes: tuple[str, ...] = ()
