"""What the checks find in a message, in what was said before it, and in a reply.

Every method knows when the turn must be done (`by`, on the loop's clock; None: no bound): a check
that is not done then has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import RetrievalError
from unified_flow.guardrails.decision import (
    PASS,
    UNREADABLE,
    GuardrailResult,
    Stage,
    of_moderation,
    of_rules,
)
from unified_flow.guardrails.moderator import ModerationFailed, Moderator
from unified_flow.guardrails.opening import has_store, open_store
from unified_flow.guardrails.recorder import Recorder, left_s
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.guardrails.rulebook import Ready, Rulebook
    from unified_flow.guardrails.store import GuardrailStore


class Inspector:
    """What fails here is told to a person (`recorder`), and is a result."""

    def __init__(
        self,
        home: Path,
        settings: GuardrailSettings,
        recorder: Recorder,
        moderator: Moderator | None,
    ) -> None:
        self._home = home
        self._settings = settings
        self._recorder = recorder
        self.moderator = moderator
        self._opening = Lock()
        self._store: GuardrailStore | None = None
        self._book: Rulebook | None = None

    @property
    def has_store(self) -> bool:
        """Whether there can be rules; looks for a file at most."""
        return self._store is not None or has_store(self._home, self._settings)

    def store(self) -> GuardrailStore:
        """Raises ConfigError where the extra is missing."""
        with self._opening:
            if self._store is None:
                from unified_flow.guardrails.rulebook import Rulebook

                store = open_store(self._home, self._settings)
                self._book = Rulebook(store)
                self._store = store
        return self._store

    async def message(self, turn: Turn, by: float | None) -> GuardrailResult | None:
        """None where nothing is configured for this user. The cheapest check comes first, and a
        text that is blocked already is shown to nobody else."""
        try:
            async with asyncio.timeout_at(by):
                ready = await self._rules_of(turn.user_id)
        except (RetrievalError, TimeoutError) as exc:
            await self._recorder.tell(exc, turn, by)
            return UNREADABLE
        if ready is None and self.moderator is None:
            return None
        if ready is not None:
            asked = (ready.rules, ready.matcher, turn.channel, turn.question)
            result = await asyncio.to_thread(of_rules, *asked)
            if not result.passes:
                return result
        return await self.moderated(turn, turn.question, "pre", by)

    async def history(
        self, turn: Turn, history: Sequence[PriorTurn], by: float | None
    ) -> list[PriorTurn]:
        """Of what the caller says was said before, what the model may be told: a front end sends
        the blocked messages of a conversation again with every later one."""
        async with asyncio.timeout_at(by):
            ready = await self._rules_of(turn.user_id)
        checks = [self._may_be_told(turn, each, ready, by) for each in history]
        passed = await asyncio.gather(*checks)
        return [each for each, passes in zip(history, passed, strict=True) if passes]

    async def moderated(
        self, turn: Turn, text: str, stage: Stage, by: float | None
    ) -> GuardrailResult:
        if self.moderator is None or not text:
            return PASS
        from unified_flow.guardrails.moderation import moderated

        own_s = self._settings.moderation_timeout_s
        timeout_s = own_s if by is None else min(own_s, left_s(by))
        outcome = await moderated(self.moderator, text, timeout_s)
        if isinstance(outcome, ModerationFailed):
            await self._recorder.tell(outcome.error, turn, by)
        return of_moderation(
            outcome,
            stage=stage,
            fails_open=self._settings.moderation_failure == "fail_open",
            escalate=self._settings.escalate_categories,
        )

    async def try_moderation(self) -> str | None:
        """What is wrong with it, if anything."""
        assert self.moderator is not None
        from unified_flow.guardrails.moderation import moderated

        outcome = await moderated(self.moderator, "hello", self._settings.moderation_timeout_s)
        return str(outcome.error) if isinstance(outcome, ModerationFailed) else None

    async def aclose(self) -> None:
        if self.moderator is not None:
            await self.moderator.aclose()
        if self._store is not None:
            self._store.close()

    async def _may_be_told(
        self, turn: Turn, said: PriorTurn, ready: Ready | None, by: float | None
    ) -> bool:
        """Not without an answer either: it was met with silence."""
        if not said.answer.strip():
            return False
        text = f"{said.question}\n{said.answer}"
        found = await asyncio.to_thread(ready.matcher.matches, text) if ready is not None else []
        return not found and (await self.moderated(turn, text, "pre", by)).passes

    async def _rules_of(self, user_id: str) -> Ready | None:
        if not self.has_store:
            return None
        self.store()
        assert self._book is not None
        return await asyncio.to_thread(self._book.of, user_id)
