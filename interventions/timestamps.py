"""UTC everywhere, ISO 8601 with `Z`."""

from __future__ import annotations

from datetime import UTC, datetime


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
