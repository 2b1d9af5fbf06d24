"""The guardrails of a flow: before the model, after it, and the record of what was decided.

The flow asks three things: may this message be answered (`admits`), may this reply be said
(`releases`), and take note that nothing could be said (`failed`). What was decided is an event of
the turn before it counts, so that a turn that is killed goes on where it stood.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified_flow.errors import PhaseError, RetrievalError
from unified_flow.events import GuardrailChecked, HistoryRead
from unified_flow.guardrails import messages
from unified_flow.guardrails.decision import (
    BROKEN,
    PASS,
    UNREADABLE,
    GuardrailResult,
    Stage,
    of_matches,
    of_moderation,
    of_scope,
)
from unified_flow.guardrails.moderator import ModerationFailed, Moderator
from unified_flow.guardrails.opening import has_store, open_store
from unified_flow.guardrails.recorder import Recorder
from unified_flow.guardrails.settings import GuardrailSettings
from unified_flow.guardrails.stats import GuardrailStats, summed
from unified_flow.ledger import Ledger
from unified_flow.results import PriorTurn
from unified_flow.sessions import SessionStore
from unified_flow.turn import Turn

if TYPE_CHECKING:
    from unified_flow.guardrails.rulebook import Ready, Rulebook
    from unified_flow.guardrails.store import GuardrailStore

logger = logging.getLogger("unified_flow.guardrails")


class Guardrails:
    """One for all turns of a process. `always`: every answer is recorded, also of users for whom
    nothing is checked (the policy `silent`). Raises ConfigError where there can be rules and the
    extra is missing: no turn is begun that nobody could check."""

    def __init__(
        self,
        home: Path,
        settings: GuardrailSettings,
        sessions: SessionStore,
        recorder: Recorder,
        *,
        moderator: Moderator | None,
        always: bool,
    ) -> None:
        self._home = home
        self._settings = settings
        self._sessions = sessions
        self._recorder = recorder
        self._moderator = moderator
        self._always = always
        self._store: GuardrailStore | None = None
        self._book: Rulebook | None = None
        if always or moderator is not None or has_store(home, settings):
            self.store()

    @property
    def checks_replies(self) -> bool:
        """A reply may be taken back, so that nobody may see it before."""
        return self._moderator is not None

    @property
    def may_silence(self) -> bool:
        """A turn may end in silence after its phases have begun, so that nobody may see these:
        how far it came tells why."""
        return self._always or self._moderator is not None

    def store(self) -> GuardrailStore:
        """Raises ConfigError where the extra is missing."""
        if self._store is None:
            from unified_flow.guardrails.rulebook import Rulebook

            self._store = open_store(self._home, self._settings)
            self._book = Rulebook(self._store)
        return self._store

    async def admits(self, ledger: Ledger) -> bool:
        """Whether the message may be answered. Asked again when a turn goes on, it is checked
        again only if nothing was decided."""
        turn = ledger.turn
        if turn.pre is not None:
            return turn.pre.decision == "pass"
        result = await self._sure(turn, self._of_message(ledger))
        if result is None:
            return True
        _record(ledger, "pre", result)
        if not result.passes:
            messages.blocked(turn, "pre", result)
            await self._recorder.decided(ledger.turn, self.store(), "pre", result)
        return result.passes

    async def releases(self, ledger: Ledger, reply: str) -> bool:
        """Whether `reply` may be said. If not, it leaves the session, and so does the message that
        it answers."""
        turn = ledger.turn
        if turn.post is not None:
            return turn.post.decision == "pass"
        checked = await self._sure(turn, self._moderated(turn, reply, "post")) if reply else None
        result = checked or PASS
        if not result.passes:
            messages.blocked(turn, "post", result)
            # First: should the process die in between, the reply is looked at once more.
            await self._take_back(turn)
        if self._moderator is not None:
            _record(ledger, "post", result)
        if not result.passes:
            await self._recorder.decided(turn, self.store(), "post", result, reply)
        elif self._always or turn.pre is not None:
            await self._recorder.answered(ledger.turn, self.store())
        return result.passes

    def tried(self, attempt: int, message: str) -> None:
        """A model that has failed is asked again."""
        if self._always:
            messages.tried(attempt, message)

    def succeeded(self, attempt: int) -> None:
        if self._always and attempt > 1:
            messages.succeeded(attempt)

    async def failed(self, turn: Turn, error: PhaseError) -> None:
        """Nothing can be said because something failed, and nobody may be told."""
        messages.failed(turn, error)
        await self._recorder.silent(turn, self.store())

    def count(self) -> tuple[int, int] | None:
        """(rules, users); None where there is no database yet. Raises as `store` does."""
        if self._store is None and not has_store(self._home, self._settings):
            return None
        everybody = self.store().all_rules()
        return sum(len(list(rules.rules())) for rules in everybody), len(everybody)

    async def try_moderation(self) -> str | None:
        """What is wrong with it, if anything."""
        assert self._moderator is not None
        from unified_flow.guardrails.moderation import moderated

        outcome = await moderated(self._moderator, "hello", self._settings.moderation_timeout_s)
        return str(outcome.error) if isinstance(outcome, ModerationFailed) else None

    def stats_of_today(self) -> GuardrailStats | None:
        """None where there is no database yet. Raises RetrievalError."""
        if self._store is None and not has_store(self._home, self._settings):
            return None
        return summed(self.store().by_day(1), 1)

    async def aclose(self) -> None:
        if self._moderator is not None:
            await self._moderator.aclose()
        if self._store is not None:
            self._store.close()

    async def _sure(
        self, turn: Turn, checking: Coroutine[Any, Any, GuardrailResult | None]
    ) -> GuardrailResult | None:
        """What the check says; one that breaks lets nothing pass."""
        try:
            return await checking
        except Exception as exc:  # noqa: BLE001 - a check that broke must not let a word out
            logger.error("a guardrail of turn %s failed: %r", turn.turn_id, exc)
            await self._recorder.tell(exc, turn)
            return BROKEN

    async def _take_back(self, turn: Turn) -> None:
        try:
            await asyncio.to_thread(self._sessions.take_back, turn)
        except RetrievalError as exc:
            # The silence holds all the same; a person sees to what the session may still hold.
            logger.critical("turn %s may still be in its session: %s", turn.turn_id, exc)
            await self._recorder.tell(exc, turn)

    async def _of_message(self, ledger: Ledger) -> GuardrailResult | None:
        """None where nothing is configured for this user. The cheapest check comes first, and a
        text that is blocked already is shown to nobody else."""
        turn = ledger.turn
        try:
            ready = await self._rules_of(turn.user_id)
        except RetrievalError as exc:
            await self._recorder.tell(exc, turn)
            return UNREADABLE
        if ready is None and self._moderator is None:
            return None
        if ready is not None:
            result = of_scope(ready.rules, turn.channel)
            if result.passes:
                found = await asyncio.to_thread(ready.matcher.matches, turn.question)
                result = of_matches(found)
            if not result.passes:
                return result
        result = await self._moderated(turn, turn.question, "pre")
        if result.passes and turn.history:
            await self._clean(ledger, turn.history, ready)
        return result

    async def _clean(
        self, ledger: Ledger, history: tuple[PriorTurn, ...], ready: Ready | None
    ) -> None:
        """Of what the caller says was said before, the model is told only what may be said: a
        front end sends the blocked messages of a conversation again with every later one."""
        checked = [self._may_be_told(ledger.turn, each, ready) for each in history]
        passed = await asyncio.gather(*checked)
        kept = [each for each, passes in zip(history, passed, strict=True) if passes]
        if len(kept) < len(history):
            ledger.insist(HistoryRead(phase="query_analyzer", turns=kept))

    async def _may_be_told(self, turn: Turn, said: PriorTurn, ready: Ready | None) -> bool:
        """Not without an answer either: it was met with silence."""
        if not said.answer.strip():
            return False
        text = f"{said.question}\n{said.answer}"
        found = await asyncio.to_thread(ready.matcher.matches, text) if ready is not None else []
        if found:
            return False
        return (await self._moderated(turn, text, "pre")).passes

    async def _moderated(self, turn: Turn, text: str, stage: Stage) -> GuardrailResult:
        if self._moderator is None:
            return PASS
        from unified_flow.guardrails.moderation import moderated

        outcome = await moderated(self._moderator, text, self._settings.moderation_timeout_s)
        if isinstance(outcome, ModerationFailed):
            await self._recorder.tell(outcome.error, turn)
        return of_moderation(
            outcome,
            stage=stage,
            fails_open=self._settings.moderation_failure == "fail_open",
            escalate=self._settings.escalate_categories,
        )

    async def _rules_of(self, user_id: str) -> Ready | None:
        if self._book is None:
            if not has_store(self._home, self._settings):
                return None
            self.store()
        assert self._book is not None
        return await asyncio.to_thread(self._book.of, user_id)


def _record(ledger: Ledger, stage: Stage, result: GuardrailResult) -> None:
    ledger.insist(
        GuardrailChecked(
            stage=stage,
            decision=result.decision,
            reason=result.reason,
            confidence=result.confidence,
            matched_rule=result.matched_rule,
            failed=result.failed,
        )
    )
