"""A session as Markdown, for reading and for keeping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unified_flow.turns.passage import public_text
from unified_flow.turns.sessions.book import Exchange
from unified_flow.turns.turn import Turn

_MARKS = re.compile(r"[\\`*<\[\]&]|(?<!\w)_|_(?!\w)")  # of Markdown; snake_case is none


def markdown(session_id: str, exchanges: Sequence[Exchange], unanswered: Sequence[Turn]) -> str:
    """Everything in the order of the turns; secrets are redacted, as wherever text leaves."""
    parts: dict[int, str] = {turn.turn_id: "\n".join(_open_end(turn)) for turn in unanswered}
    parts |= {exchange.turn_id: "\n".join(_exchange(exchange)) for exchange in exchanges}
    body = "\n\n".join(parts[turn_id] for turn_id in sorted(parts))
    return f"# Session {session_id}\n\n{body}\n"


def _exchange(exchange: Exchange) -> Iterator[str]:
    yield f"## {_line(exchange.question)}"
    yield ""
    yield f"*turn {exchange.turn_id}, {exchange.at}*"
    yield ""
    yield public_text(exchange.response)
    if exchange.citations:
        yield ""
        for citation in exchange.citations:
            yield f"- `{citation.source}`: {_line(citation.quote)}"


def _open_end(turn: Turn) -> Iterator[str]:
    yield f"## {_line(turn.question)}"
    yield ""
    if turn.status == "clarify":
        yield f"*turn {turn.turn_id} asked back:* {public_text(turn.response or '')}"
        return
    if turn.status == "answered":
        yield f"*turn {turn.turn_id} answered; the session keeps it no more*"
        return
    where = f" at {turn.failure.phase}" if turn.failure else ""
    yield f"*turn {turn.turn_id} {turn.status}{where}; there is no answer*"


def _line(text: str) -> str:
    """On one line, and only text: a question or a quote brings no tags and no links."""
    return _MARKS.sub(r"\\\g<0>", " ".join(public_text(text).split()))
