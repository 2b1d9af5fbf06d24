"""What a person sees, taken from the widgets of the screen on top."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from monitor.app import Monitor, screen_text
from monitor.screens.triage import TriageScreen
from monitor.widgets.row_list import RowList


def triage(pilot: Pilot[Any]) -> TriageScreen:
    (found,) = (s for s in pilot.app.screen_stack if isinstance(s, TriageScreen))
    return found


def rows(pilot: Pilot[Any]) -> RowList:
    return triage(pilot).rows


def current(pilot: Pilot[Any]) -> str:
    """The id of the entry under the cursor."""
    entry = triage(pilot).current()
    return str(entry["id"]) if entry else ""


def text(pilot: Pilot[Any]) -> str:
    return screen_text(pilot.app)


def told(pilot: Pilot[Any]) -> str:
    """The message that was shown last."""
    return " ".join(message.message for message in pilot.app._notifications)


def top(pilot: Pilot[Any]) -> str:
    return type(pilot.app.screen).__name__


def reading(pilot: Pilot[Any]) -> bool:
    """The detail has the keys, and is all that is seen where there is no room for the list too."""
    found = triage(pilot)
    narrow = found.detail.display and not found.pane.display
    return found.focused is found.detail and (narrow or found.has_class("-wide"))


def line_of_cursor(pilot: Pilot[Any]) -> int:
    """The line of the terminal on which the cursor's item is."""
    found = rows(pilot)
    return found.cursor - found.scroll_offset.y


def app(pilot: Pilot[Any]) -> Monitor:
    assert isinstance(pilot.app, Monitor)
    return pilot.app


def problem(pilot: Pilot[Any]) -> str:
    """What the form on top says went wrong, however its lines are broken."""
    return str(pilot.app.screen.query_one("#form-problem", Static).content)
