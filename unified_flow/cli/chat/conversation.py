"""What a chat knows while it lasts, and the turns it runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from interventions.secrets.redaction import redact_text
from unified_flow.cli.live import phases_shown, run_turn
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ASKED, ResumeRequest
from unified_flow.resume.resumption import ResumeResult, resume_turn
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.turn import Turn

Ended = TypeVar("Ended")


@dataclass
class Conversation:
    """`open_flow` makes a flow with the settings as they are now; `last` is the latest turn."""

    open_flow: Callable[[], UnifiedFlow]
    flow: UnifiedFlow
    session: str
    user: str
    home: Path | None
    live: bool
    last: Turn | None = None
    error: PhaseError | None = None

    @property
    def unfinished(self) -> Turn | None:
        """The latest turn, if it failed or was interrupted."""
        turn = self.last
        return turn if turn is not None and turn.status in {"failed", "interrupted"} else None

    @property
    def question(self) -> str | None:
        """What `human.ask` wants to know before the turn goes on."""
        failure = self.last.failure if self.last is not None else None
        if failure is None or failure.error_type != ASKED:
            return None
        return redact_text(failure.error_message)

    async def ask(self, question: str) -> None:
        """One turn; `last` and `error` say how it went. Ctrl-C interrupts it, and no more."""
        begun: list[int] = []
        asking = run_turn(
            self.flow,
            self.session,
            question,
            live=self.live,
            user=self.user,
            again=True,
            begun=begun,
        )
        ended = await _interruptible(asking)
        if ended is not None:
            self.last, self.error = ended
            return
        # As its journal has it; nothing if Ctrl-C came before the turn began.
        turns = TurnArchive(self.flow.services.turns)
        self.last, self.error = await turns.load(begun[0]) if begun else None, None

    async def retry(self, **wanted: Any) -> ResumeResult | None:
        """Let the unfinished turn go on, with today's settings; None if it was interrupted.

        Raises what `resume_turn` raises, and ConfigError for settings that are wrong.
        """
        turn = self.unfinished
        assert turn is not None
        await self.reload()
        request = ResumeRequest(via="chat", **wanted)
        with phases_shown(self.live) as observer:
            resuming = resume_turn(self.flow, turn.turn_id, request, observer=observer)
            resumed = await _interruptible(resuming)
        if resumed is not None:
            self.last, self.error = resumed.turn, resumed.error
        return resumed

    async def reload(self) -> None:
        """Read the settings again. The flow stays as it is if they are wrong (ConfigError)."""
        flow = self.open_flow()
        await self.flow.aclose()
        self.flow = flow


async def _interruptible(work: Coroutine[Any, Any, Ended]) -> Ended | None:
    """None if Ctrl-C came: it ends the turn, which can go on later, and not the chat."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise  # the chat itself is cancelled
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
