"""A session as a page in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from interventions.secrets.redaction import redact_for_asker, redact_text
from unified_flow.turns.sessions.store import Exchange
from unified_flow.turns.turn import Turn

_MARKS = re.compile(r"[\\`*<\[\]&]|(?<!\w)_|_(?!\w)")  # of Markdown; snake_case is none


def markdown(
    session_id: str,
    exchanges: Sequence[Exchange],
    unanswered: Sequence[Turn],
    mask: Callable[[str], str] = redact_for_asker,
) -> str:
    """Everything in the order of the turns. `mask` is for the answers and what they cite;
    a question is redacted strictly."""
    parts: dict[int, str] = {turn.turn_id: "\n".join(_open_end(turn, mask)) for turn in unanswered}
    parts |= {exchange.turn_id: "\n".join(_exchange(exchange, mask)) for exchange in exchanges}
    body = "\n\n".join(parts[turn_id] for turn_id in sorted(parts))
    return f"# Session {session_id}\n\n{body}\n"


def _exchange(exchange: Exchange, mask: Callable[[str], str]) -> Iterator[str]:
    yield f"## {_line(redact_text(exchange.question))}"
    yield ""
    yield f"*turn {exchange.turn_id}, {exchange.at}*"
    yield ""
    yield mask(exchange.response)
    if exchange.citations:
        yield ""
        for citation in exchange.citations:
            yield f"- `{citation.source}`: {_line(mask(citation.quote))}"


def _open_end(turn: Turn, mask: Callable[[str], str]) -> Iterator[str]:
    yield f"## {_line(redact_text(turn.question))}"
    yield ""
    if turn.status == "clarify":
        yield f"*turn {turn.turn_id} asked back:* {mask(turn.response or '')}"
        return
    if turn.status == "answered":
        yield f"*turn {turn.turn_id} answered; the session keeps it no more*"
        return
    where = f" at {turn.failure.phase}" if turn.failure else ""
    yield f"*turn {turn.turn_id} {turn.status}{where}; there is no answer*"


def _line(text: str) -> str:
    """On one line, and only text: a question or a quote brings no tags and no links."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
