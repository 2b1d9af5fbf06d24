"""The text of an answer while it is still being written: a tap on a stream of server-sent events.

Nothing is decided on what the tap sees: the whole body is read as any other reply is
(`completion.py`), and a stream that is cut is a failure, whatever was shown of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from unified_flow.models.openai.completion import text_of
from unified_flow.models.reply import spoken_from

_ENDS = (b"\n\n", b"\r\n\r\n")


class TextTap:
    """Gives `show` the field `field` of the JSON answer, as far as it has come, whenever it grew.

    `secret` is never shown, nor a beginning of it at the end of the text.
    """

    def __init__(self, show: Callable[[str], None], field: str, secret: str | None) -> None:
        self._show = show
        self._field = field
        self._secret = secret
        self._rest = b""
        self._reply = ""
        self._shown = ""

    def feed(self, chunk: bytes) -> None:
        self._rest += chunk
        before = len(self._reply)
        while (end := self._end()) is not None:
            event, self._rest = self._rest[: end[0]], self._rest[end[1] :]
            self._reply += _content(event)
        if len(self._reply) > before:
            self._tell()

    def _end(self) -> tuple[int, int] | None:
        places = [(at, at + len(mark)) for mark in _ENDS if (at := self._rest.find(mark)) >= 0]
        return min(places, default=None)

    def _tell(self) -> None:
        start = self._reply.find("{", spoken_from(self._reply))
        if start < 0:
            return
        try:
            answer = from_json(self._reply[start:], allow_partial="trailing-strings")
        except ValueError:
            return  # it is no JSON: the reader of the whole reply will say so
        text = answer.get(self._field) if isinstance(answer, dict) else None
        if isinstance(text, str) and (text := self._safe(text)) != self._shown:
            self._shown = text
            self._show(text)

    def _safe(self, text: str) -> str:
        if not self._secret:
            return text
        text = text.replace(self._secret, "[redacted]")
        for length in range(min(len(self._secret), len(text)), 0, -1):
            if text.endswith(self._secret[:length]):
                return text[:-length]
        return text


def _content(event: bytes) -> str:
    """What one event adds to the reply; "" for whatever else it is."""
    data = b"\n".join(
        line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:")
    )
    try:
        parsed: Any = json.loads(data)
        content = parsed["choices"][0]["delta"]["content"]
    except (ValueError, LookupError, TypeError):
        return ""
    return text_of(content)
