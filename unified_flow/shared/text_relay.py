"""The answer while a model writes it, from the worker to the process that waits for it.

It is sent on the channel of the turns (`turn_lease.py`) and kept nowhere: who misses a part sees
the text of the next phase.
"""

from __future__ import annotations

import asyncio
import json

from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import Database
from unified_flow.shared.turn_lease import CHANNEL
from unified_flow.turns.events import Observed, TextArrived

EVERY_S = 0.1
MOST = 600  # characters, each up to 12 bytes as JSON: PostgreSQL takes 8000 in a notification
MARK = "text "
_PART = TypeAdapter(tuple[str, NonNegativeInt, str])  # the phase, where the text goes, the text


class TextSender:
    """An observer of a turn that runs here. What has come within a moment is sent at once."""

    def __init__(self, database: Database, turn_id: int) -> None:
        self._database = database
        self._turn_id = turn_id
        self._latest = TextArrived(phase="", text="")
        self._sent = ("", 0)  # the phase, and how much of its text
        self._sending: asyncio.Task[None] | None = None

    def __call__(self, event: Observed) -> None:
        if isinstance(event, TextArrived):
            self._latest = event
            if self._sending is None or self._sending.done():
                self._sending = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        while (news := self._next()) is not None:
            payload = f"{self._turn_id} {MARK}{json.dumps(news)}"
            query = "SELECT pg_notify(%(channel)s, %(payload)s)"
            try:
                await asyncio.to_thread(self._database.row, query, channel=CHANNEL, payload=payload)
            except DatabaseAwayError:
                return  # who follows sees the text of the next phase
            await asyncio.sleep(EVERY_S)

    def _next(self) -> tuple[str, int, str] | None:
        latest = self._latest
        sent = self._sent[1] if self._sent[0] == latest.phase else 0
        at = sent if sent <= len(latest.text) else 0  # another draft is written
        new = latest.text[at : at + MOST]
        self._sent = (latest.phase, at + len(new))
        return (latest.phase, at, new) if new else None


class TextReceiver:
    """Puts the parts together again."""

    def __init__(self) -> None:
        self._phase = self._text = ""

    def received(self, payload: str) -> TextArrived | None:
        """None for a part of which the beginning was missed, and for what another program says on a
        channel of this name."""
        try:
            phase, at, text = _PART.validate_json(payload.removeprefix(MARK))
        except ValidationError:
            return None
        known = self._text if phase == self._phase else ""
        if at > len(known):
            return None
        self._phase, self._text = phase, known[:at] + text
        return TextArrived(phase=phase, text=self._text)
