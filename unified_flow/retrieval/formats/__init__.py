"""Bytes of a file to text, sections and chunks; the words and patterns of markup and programming
languages are data (`words.toml`)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def words_of(format: str) -> dict[str, Any]:
    """The format's tables of `words.toml` by name; a text is the set of its words."""
    file = Path(__file__).with_name("words.toml")
    found = tomllib.loads(file.read_text(encoding="utf-8"))[format]
    return {
        name: frozenset(each.split()) if isinstance(each, str) else each
        for name, each in found.items()
    }
