"""What a question asks to be remembered, in its own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from unified_flow.config.tool_names import MEMORY_CREATE
from unified_flow.lib.text.lexicon import any_language


def to_remember(question: str) -> str | None:
    """What follows "remember that"; a question is none ("remember that film?")."""
    every = any_language()
    match = re.match(
        rf"^\W*{every.remember}\s*(?::|,?\s*{every.that})\s*(?P<text>\S.*?)\s*$",
        question,
        re.IGNORECASE | re.DOTALL,
    )
    if match is None or match["text"].endswith("?"):
        return None
    return match["text"]


def is_asked_for(tool: str, args: Mapping[str, Any], question: str) -> bool:
    """Does the person's own question ask for this very call? So far for `memory.create` alone, of
    the words that follow "remember that": nothing that a document or a page says can be among
    them, since it is the question as it was typed that counts."""
    if tool != MEMORY_CREATE or (wanted := to_remember(question)) is None:
        return False
    text = _plain(str(args.get("text", "")))
    return bool(text) and text in _plain(wanted)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".!")
