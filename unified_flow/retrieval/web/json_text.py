"""JSON as text with a line for each value."""

from __future__ import annotations

import json
from collections.abc import Iterator

from unified_flow.lib.sandbox import Part
from unified_flow.retrieval.web import MAX_CHARS

MOST_GROWTH = 10  # times what came: depth costs a server nothing, and is indented


def convert(data: bytes) -> Iterator[Part]:
    """In the sandbox."""
    yield Part((), laid_out(data.decode()).split("\n"))


def laid_out(page: str) -> str:
    """As it came if it is no JSON, or would grow without measure."""
    most = min(MAX_CHARS, MOST_GROWTH * len(page))
    parts, length = [], 0
    try:
        for part in json.JSONEncoder(indent=1, ensure_ascii=False).iterencode(json.loads(page)):
            parts.append(part)
            length += len(part)
            if length > most:
                return page
    except (ValueError, RecursionError):
        return page  # lines of JSON, or what only calls itself so
    return "".join(parts)
