"""A session as a page in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

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
    said = {turn.turn_id: (turn.question, _open_end(turn, mask)) for turn in unanswered}
    said |= {each.turn_id: (each.question, _answer(each, mask)) for each in exchanges}
    parts = [
        f"## {_line(redact_text(asked))}\n\n{text}" for _, (asked, text) in sorted(said.items())
    ]
    return "\n\n".join([f"# Session {session_id}", *parts]) + "\n"


def _answer(exchange: Exchange, mask: Callable[[str], str]) -> str:
    text = f"*turn {exchange.turn_id}, {exchange.at}*\n\n{mask(exchange.response)}"
    cited = [f"- `{each.source}`: {_line(mask(each.quote))}" for each in exchange.citations]
    return "\n".join([text, "", *cited]) if cited else text


def _open_end(turn: Turn, mask: Callable[[str], str]) -> str:
    if turn.status == "clarify":
        return f"*turn {turn.turn_id} asked back:* {mask(turn.response or '')}"
    if turn.status == "answered":
        return f"*turn {turn.turn_id} answered; the session keeps it no more*"
    where = f" at {turn.failure.phase}" if turn.failure else ""
    return f"*turn {turn.turn_id} {turn.status}{where}; there is no answer*"


def _line(text: str) -> str:
    """The text on one line, and only text: a question or a quote brings no tags and no links."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
