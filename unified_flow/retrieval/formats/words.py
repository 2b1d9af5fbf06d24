"""The words and patterns of markup and programming languages, which are data (`words.toml`)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def words_of(format: str) -> dict[str, Any]:
    """By name: tables as they are, text as the set of its words."""
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[format]
    return {
        name: frozenset(each.split()) if isinstance(each, str) else each
        for name, each in found.items()
    }
