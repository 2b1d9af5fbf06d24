"""Texts as PostgreSQL takes them: it refuses the null character, and UTF-8 lone surrogates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def encoded(record: Mapping[str, Any]) -> str:
    """The record as JSON in ASCII, from which every character comes back."""
    return json.dumps(record, separators=(",", ":"))


def storable(text: str) -> str:
    """A text for a column by which something is found; the same text for the same question."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def escaped(text: str) -> str:
    """The text in ASCII, as in JSON: the same text comes back (`unescaped`), and is found by it."""
    return json.dumps(text)[1:-1]


def unescaped(text: str) -> str:
    return str(json.loads(f'"{text}"'))
