"""Moments in UTC, as ISO 8601 with `Z`; durations as typed and as shown: `90s`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_YEAR_S = 31_556_952  # the mean one of the calendar
_MOST_DAYS = 1000
_FIRST = datetime.min.replace(tzinfo=UTC)
_PART = r"(\d{1,6}(?:\.\d{1,3})?)\s?([smhdwSMHDW])"


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    text = moment.astimezone(UTC).isoformat()
    return text.removesuffix("+00:00") + "Z"


def from_text(text: str) -> datetime:
    """Raises ValueError for anything that is not an ISO 8601 time with a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is out of the years 1 to 9999") from error


def parse_duration(text: str) -> timedelta | None:
    """None when it is no duration."""
    if not text or re.sub(_PART, "", text):
        return None
    seconds = sum(float(number) * _UNIT_S[unit.lower()] for number, unit in re.findall(_PART, text))
    # Longer than timedelta knows is no duration either.
    return timedelta(seconds=seconds) if seconds < timedelta.max.total_seconds() else None


def earlier(moment: datetime, by: timedelta) -> datetime:
    """The first moment of the year 1 where that would be earlier still."""
    return moment - min(by, moment - _FIRST)


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


def ago(text: str, now: datetime) -> str:
    """`3m ago (2026-11-22 09:15:02Z)`, of what is to come `2026-11-22 09:15:02Z, in 3h`; a text
    that is no time as it is."""
    try:
        moment = from_text(text)
    except ValueError:
        return text
    at = f"{moment:%Y-%m-%d %H:%M:%S}Z"
    if moment > now:
        return f"{at}, in {short_duration(moment - now)}"
    return f"{short_duration(now - moment)} ago ({at})"
