"""What a question asks to be remembered, in its own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REMEMBER = "memory.create"
_TO_REMEMBER = re.compile(
    r"^\W*(?:please\s+|(?:can|could)\s+you\s+(?:please\s+)?)?(?:remember|note|keep\s+in\s+mind"
    r"|kom\s+ihåg|souviens-toi|souvenez-vous|retiens|retenez)\s*(?::|,?\s*(?:that|att|que|qu['’]))"  # noqa: RUF001
    r"\s*(?P<text>\S.*?)\s*$",
    re.IGNORECASE | re.DOTALL,
)


def to_remember(question: str) -> str | None:
    """What follows "remember that"; a question is none ("remember that film?")."""
    match = _TO_REMEMBER.match(question)
    if match is None or match["text"].endswith("?"):
        return None
    return match["text"]


def is_asked_for(tool: str, args: Mapping[str, Any], question: str) -> bool:
    """Does the person's own question ask for this very call? So far for `memory.create` alone, of
    the words that follow "remember that": nothing that a document or a page says can be among
    them, since it is the question as it was typed that counts."""
    if tool != REMEMBER or (wanted := to_remember(question)) is None:
        return False
    text = _plain(str(args.get("text", "")))
    return bool(text) and text in _plain(wanted)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".!")
