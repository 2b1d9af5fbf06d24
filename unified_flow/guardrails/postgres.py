"""A connection to PostgreSQL that nobody waits for without end.

Imported late: psycopg is an extra.
"""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any

import psycopg

from unified_flow.guardrails.engines import ANSWER_S


class Connection(psycopg.Connection[Any]):
    """A server that has hung, or a proxy that forwards nothing any more, acknowledges what it is
    sent, so that neither its own time limits nor those of TCP end the wait."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        return super().wait(self._bounded(gen), *args, **options)

    def _bounded(self, gen: Any) -> Generator[Any, Any, Any]:
        ends_at = monotonic() + ANSWER_S
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and monotonic() > ends_at:  # asked again several times a second
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {ANSWER_S:g} s")
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value
