"""The guardrails of a flow: before the model, after it, and the record of their decisions.

The flow asks whether a message may be answered (`admits`) and whether a reply may be given
(`releases`), and reports a failure that silences the turn (`failed`). A decision is an event of the
turn before it counts, so that a killed turn goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from unified_flow.errors import RetrievalError
from unified_flow.guardrails.decisions import GuardrailStats, stats_of
from unified_flow.guardrails.inspector import Inspector
from unified_flow.guardrails.recorder import REPLY_CHARS, Recorder, log_block, log_failure
from unified_flow.guardrails.verdict import BROKEN, PASS, GuardrailResult, Stage
from unified_flow.phases.errors import PhaseError
from unified_flow.policies import MAX_ATTEMPTS
from unified_flow.turns.events import GuardrailChecked, HistoryRead
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.memory import MemoryRecord, MemoryStore
from unified_flow.turns.sessions import SessionStore
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore

logger = logging.getLogger("unified_flow.guardrails")


class Guardrails:
    """One for all turns of a process. `always`: every answer is recorded, also of users for whom
    nothing is checked (the policy `silent`). Raises ConfigError where there can be rules and the
    extra is missing: no turn begins that cannot be checked."""

    def __init__(
        self,
        sessions: SessionStore,
        memory: MemoryStore,
        inspector: Inspector,
        recorder: Recorder,
        *,
        always: bool,
    ) -> None:
        self._sessions = sessions
        self._memory = memory
        self._inspector = inspector
        self._recorder = recorder
        self._always = always
        if self.may_silence or inspector.has_store:
            self.store()

    @property
    def checks_replies(self) -> bool:
        """Whether a reply is moderated before it is said."""
        return self._inspector.moderator is not None

    @property
    def may_silence(self) -> bool:
        """A turn may end in silence after its phases have begun: then nobody may see how far it
        came, which shows why, nor the text while it is written."""
        return self._always or self.checks_replies

    def store(self) -> GuardrailStore:
        """Raises ConfigError where the extra is missing."""
        return self._inspector.store()

    async def admits(self, ledger: Ledger, ends_at: float | None = None) -> bool:
        """Whether the message may be answered. A resumed turn keeps its decision.

        `ends_at`, on the loop's clock, is the turn's deadline: an unfinished check then counts as
        failed, and records are written without the turn. None: no bound.
        """
        turn = ledger.turn
        if turn.pre is not None:
            return turn.pre.decision == "pass"
        result = await self._completed(turn, self._of_message(ledger, ends_at), ends_at)
        if result is None:
            return True
        _record(ledger, "pre", result)
        if not result.passes:
            log_block(turn, "pre", result)
            recording = self._recorder.blocked(ledger.turn, self.store(), "pre", result)
            await self._recorder.in_time(recording, ends_at)
        return result.passes

    async def releases(self, ledger: Ledger, reply: str, ends_at: float | None = None) -> bool:
        """Whether `reply` may be given; `ends_at` as in `admits`. If not, the session loses it, the
        message that it answers, and the memories that the turn has made."""
        turn = ledger.turn
        if turn.post is not None:
            # It was released before; the process may have died before that was recorded.
            await self._recorder.in_time(self._recorder.answered(turn, self.store()), ends_at)
            return True
        checking = self._inspector.moderated(turn, reply, "post", ends_at)
        result = await self._completed(turn, checking, ends_at) or PASS
        more = {"reply": reply[:REPLY_CHARS]}
        if not result.passes:
            log_block(turn, "post", result)
            # First: should the process die in between, the reply is checked once more.
            gone = await self._recorder.in_time(self._take_back(turn), ends_at)
            if gone:
                more["forgotten"] = "\n".join(record.text for record in gone)[:REPLY_CHARS]
        if self.checks_replies:
            _record(ledger, "post", result)
        if not result.passes:
            recording = self._recorder.blocked(turn, self.store(), "post", result, more)
            await self._recorder.in_time(recording, ends_at)
        elif self._always or turn.pre is not None:
            await self._recorder.in_time(
                self._recorder.answered(ledger.turn, self.store()), ends_at
            )
        return result.passes

    def tried(self, attempt: int, message: str) -> None:
        """A model that has failed is asked again."""
        if self._always:
            logger.warning("[LLM RETRY] Attempt %d/%d failed: %s", attempt, MAX_ATTEMPTS, message)

    def succeeded(self, attempt: int) -> None:
        if self._always and attempt > 1:
            logger.info("[LLM RETRY] Success on attempt %d/%d", attempt, MAX_ATTEMPTS)

    async def failed(self, turn: Turn, error: PhaseError) -> None:
        """The turn ends in silence because something failed."""
        log_failure(turn, error)
        await self._recorder.silenced(turn, self.store())

    def count(self) -> tuple[int, int] | None:
        """(rules, users); None where there is no database yet. Raises as `store` does."""
        if not self._inspector.has_store:
            return None
        everybody = self.store().all_rules()
        return sum(len(list(rules.rules())) for rules in everybody), len(everybody)

    async def try_moderation(self) -> str | None:
        """What is wrong with it, if anything."""
        return await self._inspector.try_moderation()

    def stats_of_today(self) -> GuardrailStats | None:
        """None where there is no database yet. Raises RetrievalError."""
        return stats_of(self.store().by_day(1), 1) if self._inspector.has_store else None

    async def aclose(self) -> None:
        await self._recorder.aclose()
        await self._inspector.aclose()

    async def _of_message(self, ledger: Ledger, ends_at: float | None) -> GuardrailResult | None:
        result = await self._inspector.message(ledger.turn, ends_at)
        history = ledger.turn.history
        if result is not None and result.passes and history:
            kept = await self._inspector.history(ledger.turn, history, ends_at)
            if len(kept) < len(history):
                ledger.record_always(HistoryRead(phase="query_analyzer", turns=kept))
        return result

    async def _completed(
        self,
        turn: Turn,
        checking: Coroutine[Any, Any, GuardrailResult | None],
        ends_at: float | None,
    ) -> GuardrailResult | None:
        """The result of the check; one that raises lets nothing pass."""
        try:
            return await checking
        except Exception as exc:  # noqa: BLE001 - a check that broke must let nothing pass
            logger.error("a guardrail of turn %s failed: %r", turn.turn_id, exc)
            await self._recorder.report(exc, turn, ends_at)
            return BROKEN

    async def _take_back(self, turn: Turn) -> list[MemoryRecord]:
        """Removes the turn from its session, and what it has remembered of its user, which is
        returned. Silence holds whatever fails here; a person removes the rest."""
        try:
            await asyncio.to_thread(self._sessions.take_back, turn)
        except RetrievalError as exc:
            logger.critical("turn %s may still be in its session: %s", turn.turn_id, exc)
            await self._recorder.report(exc, turn)
        try:
            return await asyncio.to_thread(self._memory.forget, turn.user_id, turn.turn_id)
        except RetrievalError as exc:
            logger.critical("what turn %s remembered may stay: %s", turn.turn_id, exc)
            await self._recorder.report(exc, turn)
            return []


def _record(ledger: Ledger, stage: Stage, result: GuardrailResult) -> None:
    ledger.record_always(GuardrailChecked(stage=stage, **asdict(result)))
