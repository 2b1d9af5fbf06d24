"""What the checks find in a message, in the history before it, and in a reply.

`ends_at` is the turn's deadline on the loop's clock (None: no bound); a check that is unfinished
then has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from interventions.home import state_folder
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.guardrails.moderator import ModerationFailed, Moderator, moderated
from unified_flow.guardrails.recorder import Recorder, left_s
from unified_flow.guardrails.verdict import (
    PASS,
    UNREADABLE,
    GuardrailResult,
    Stage,
    of_moderation,
    of_rules,
)
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.guardrails.store import ActiveRules, GuardrailStore

DATABASE_FILE = "guardrails.sqlite3"
NEEDED = ("sqlalchemy", "alembic", "ahocorasick", "confusable_homoglyphs")


class Inspector:
    """A check that fails is reported to a person (`recorder`), and is a result."""

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

    @property
    def has_store(self) -> bool:
        """Whether there can be rules: a database is configured, or the file of one exists."""
        if self._store is not None or self._settings.database_url_env is not None:
            return True
        return (state_folder(self._home) / DATABASE_FILE).exists()

    def store(self) -> GuardrailStore:
        """Raises ConfigError where the extra is missing."""
        with self._opening:
            if self._store is None:
                self._store = open_store(self._home, self._settings)
        return self._store

    async def message(self, turn: Turn, ends_at: float | None) -> GuardrailResult | None:
        """None where nothing is configured for this user. The cheapest check comes first, and a
        text that is blocked already is sent to no endpoint."""
        try:
            async with asyncio.timeout_at(ends_at):
                active = await self._rules_of(turn.user_id)
        except (RetrievalError, TimeoutError) as exc:
            await self._recorder.report(exc, turn, ends_at)
            return UNREADABLE
        if active is None and self.moderator is None:
            return None
        if active is not None:
            result = await asyncio.to_thread(
                of_rules, active.rules, active.matcher, turn.channel, turn.question
            )
            if not result.passes:
                return result
        return await self.moderated(turn, turn.question, "pre", ends_at)

    async def history(
        self, turn: Turn, history: Sequence[PriorTurn], ends_at: float | None
    ) -> list[PriorTurn]:
        """The part of the caller's history that the model may see: a front end sends the blocked
        messages of a conversation again with every later one."""
        async with asyncio.timeout_at(ends_at):
            active = await self._rules_of(turn.user_id)
        checks = [self._passes(turn, each, active, ends_at) for each in history]
        passed = await asyncio.gather(*checks)
        return [each for each, passes in zip(history, passed, strict=True) if passes]

    async def moderated(
        self, turn: Turn, text: str, stage: Stage, ends_at: float | None
    ) -> GuardrailResult:
        if self.moderator is None or not text:
            return PASS
        own_s = self._settings.moderation_timeout_s
        timeout_s = own_s if ends_at is None else min(own_s, left_s(ends_at))
        outcome = await moderated(self.moderator, text, timeout_s)
        if isinstance(outcome, ModerationFailed):
            await self._recorder.report(outcome.error, turn, ends_at)
        return of_moderation(
            outcome,
            stage=stage,
            fails_open=self._settings.moderation_failure == "fail_open",
            escalate=self._settings.escalate_categories,
        )

    async def try_moderation(self) -> str | None:
        """What is wrong with it, if anything."""
        assert self.moderator is not None
        outcome = await moderated(self.moderator, "hello", self._settings.moderation_timeout_s)
        return str(outcome.error) if isinstance(outcome, ModerationFailed) else None

    async def aclose(self) -> None:
        if self.moderator is not None:
            await self.moderator.aclose()
        if self._store is not None:
            self._store.close()

    async def _passes(
        self, turn: Turn, exchange: PriorTurn, active: ActiveRules | None, ends_at: float | None
    ) -> bool:
        """An exchange without an answer does not: it was met with silence."""
        if not exchange.answer.strip():
            return False
        text = f"{exchange.question}\n{exchange.answer}"
        found = await asyncio.to_thread(active.matcher.matches, text) if active else []
        if found:
            return False
        return (await self.moderated(turn, text, "pre", ends_at)).passes

    async def _rules_of(self, user_id: str) -> ActiveRules | None:
        if not self.has_store:
            return None
        return await asyncio.to_thread(self.store().active_rules, user_id)


def open_store(home: Path, settings: GuardrailSettings) -> GuardrailStore:
    """The database is opened on first use, its modules are loaded here: without rules nobody pays
    for SQLAlchemy, nor needs the extra. Raises ConfigError without the extra, and for a variable
    that holds no URL."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ConfigError(
            f"guardrails need the extra `guardrails` ({missing[0]} is not installed)",
            hint="pip install 'unified-flow[guardrails]'",
        )
    from unified_flow.guardrails.outbox import WAITING
    from unified_flow.guardrails.sql_database import SqlDatabase
    from unified_flow.guardrails.store import GuardrailStore

    state = state_folder(home)
    if settings.database_url_env is not None:
        database = SqlDatabase.of_variable(settings.database_url_env)
    else:
        database = SqlDatabase.of_file(state / DATABASE_FILE)
    return GuardrailStore(database, state / WAITING)
