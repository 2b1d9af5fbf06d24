"""`90s`, `30m`, `1h30m`, `2d`, `1w`: as typed and as shown."""

from __future__ import annotations

import re
from datetime import timedelta

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_YEAR_S = 31_556_952  # the mean one of the calendar
_MOST_DAYS = 1000
_PART = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s?([smhdw])", re.IGNORECASE)


def parse_duration(text: str) -> timedelta | None:
    """None when it is no duration."""
    seconds, position = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != position:
            return None
        seconds += float(part[1]) * _UNIT_S[part[2].lower()]
        position = part.end()
    return timedelta(seconds=seconds) if position and position == len(text) else None


def short_duration(duration: timedelta) -> str:
    """Two or three characters where possible, and never more than four in a thousand years: 12s,
    5m, 3h, 2d, 999d, 2y."""
    seconds = max(int(duration.total_seconds()), 0)
    if seconds >= _MOST_DAYS * _UNIT_S["d"]:
        return f"{seconds // _YEAR_S}y"
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
