"""What the monitor shows at one moment: the queue as read, or what kept it from being read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from interventions.entry import Entry, Transition, is_open
from interventions.upkeep.health import Health


class Kind(StrEnum):
    """Why there is no queue to show; each is told differently."""

    FIRST_RUN = "first run"
    VANISHED = "folder gone"
    CORRUPT = "corrupt"
    STORAGE = "unreadable"


@dataclass(frozen=True)
class Trouble:
    """`what` is the matter and `todo` is what a person does about it."""

    kind: Kind
    what: str
    todo: str


@dataclass(frozen=True)
class Snapshot:
    """`of_all_states`: what is closed belongs in the list too, as in an exported file. `locked` is
    who keeps it from being changed."""

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
class Background:
    """What belongs to one entry and lies in other files: past resolutions and who did what."""

    past: tuple[Entry, ...] = ()
    journal: tuple[Transition, ...] = ()
