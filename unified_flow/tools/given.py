"""Arguments as a person writes them: `key=value`, or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def from_json(text: str) -> dict[str, Any]:
    """Raises ValueError for what is no JSON object."""
    given = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError("it is no JSON object")
    return given


def from_pairs(pairs: Iterable[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value is text where the schema says so, else JSON if it is any. Raises ValueError."""
    given: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"{pair!r} is not key=value")
        kind = (schema.get("properties") or {}).get(key, {})
        given[key] = value if kind.get("type") == "string" else _value(value)
    return given


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
