"""Hear nothing of it for a while, or until it came so many more times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from textual.app import ComposeResult
from textual.widgets import Input, Static

from interventions.durations import parse_duration
from interventions.entry import Entry
from interventions.timestamps import from_text
from monitor.core.changes import VIA, Change, InputError
from monitor.forms.form import Form

_TIMES = re.compile(r"x\s?(\d{1,6})|(\d{1,6})\s?x")


@dataclass(frozen=True)
class Until:
    """Exactly one of the three."""

    duration: timedelta | None = None
    moment: datetime | None = None
    n_more: int | None = None


def until(text: str) -> Until:
    """`4h`, `x10` (ten more times) or a time with its zone. Raises InputError."""
    text = text.strip()
    times = _TIMES.fullmatch(text)
    if times:
        return Until(n_more=int(times[1] or times[2]))
    duration = parse_duration(text)
    if duration:
        return Until(duration=duration)
    try:
        return Until(moment=from_text(text))
    except ValueError:
        raise InputError(
            f"{text!r} is neither a while (30m, 4h, 2d), nor a number of times (x10), "
            "nor a time with its zone (2026-01-31T09:00Z)"
        ) from None


class SnoozeForm(Form):
    DEED = "Snooze"
    DONE = "snoozed"
    AUTO_FOCUS = "#until"

    def fields(self) -> ComposeResult:
        yield Input("4h", placeholder="4h", id="until")
        yield Static(
            "30m, 4h, 2d  ·  x10: until it came ten more times  ·  2026-01-31T09:00Z",
            classes="hint",
            markup=False,
        )

    def change(self) -> Change:
        wanted = until(self.query_one("#until", Input).value)

        def one(entry: Entry) -> Entry:
            try:
                return self.queue.snooze(
                    entry["id"],
                    duration=wanted.duration,
                    until=wanted.moment,
                    until_n_more=wanted.n_more,
                    expected_version=entry["version"],
                    via=VIA,
                )
            except ValueError as error:  # a moment that is past, or no longer in the calendar
                raise InputError(str(error)) from error

        return one
