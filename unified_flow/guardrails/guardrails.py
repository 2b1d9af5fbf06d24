"""The guardrails of a flow: before the model, after it, and the record of their decisions.

The flow asks whether a message may be answered (`admits`) and whether a reply may be given
(`releases`), and reports a failure that silences the turn (`failed`). A decision is an event of the
turn before it counts, so that a killed turn goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from interventions.home import state_folder
from interventions.settings import SharedSettings, settings_of
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import DatabaseAwayError, RetrievalError, needs_extra
from unified_flow.guardrails.decisions import GuardrailStats, stats_of
from unified_flow.guardrails.moderator import ModerationFailed, Moderator
from unified_flow.guardrails.recorder import REPLY_CHARS, Recorder, left_s, log_block, log_failure
from unified_flow.guardrails.verdict import (
    BROKEN,
    PASS,
    UNREADABLE,
    GuardrailResult,
    Stage,
    of_moderation,
    of_reply,
    of_rules,
)
from unified_flow.phases.errors import PhaseError
from unified_flow.policies import MAX_ATTEMPTS
from unified_flow.turns.events import GuardrailChecked, HistoryRead
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.memory import MemoryRecord, MemoryStore
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.sessions import Sessions
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.guardrails.store import ActiveRules, GuardrailStore

logger = logging.getLogger("unified_flow.guardrails")
DATABASE_FILE = "guardrails.sqlite3"


@dataclass(eq=False)
class Guardrails:
    """One for all turns of a process. A check that fails, or is unfinished when the turn's time is
    up, is reported to a person, and is a result. `always`: every answer is recorded, also of users
    for whom nothing is checked (the policy `silent`). Raises ConfigError where there can be rules
    and the extra is missing: no turn begins that cannot be checked."""

    home: Path
    settings: GuardrailSettings
    sessions: Sessions
    memory: MemoryStore
    recorder: Recorder
    moderator: Moderator | None
    _: KW_ONLY
    always: bool
    _opening: Lock = field(default_factory=Lock)
    _store: GuardrailStore | None = None
    _has_tables: bool = False

    def __post_init__(self) -> None:
        with suppress(DatabaseAwayError):  # a turn that begins says so
            if self.always or self.checks_replies or self._has_store:
                self.store()

    @property
    def checks_replies(self) -> bool:
        """Whether a reply is checked before it is said."""
        return self.moderator is not None or self.settings.check_replies

    @property
    def may_silence(self) -> bool:
        """A turn may end in silence after its phases have begun: then nobody may see how far it
        came, which shows why, nor the text while it is written."""
        return self.always or (self.checks_replies and not self.settings.shadow)

    @property
    def are_used(self) -> bool:
        return self._has_store or self.moderator is not None

    def check_store(self) -> None:
        """Raises RetrievalError if rules cannot be read now."""
        if self._has_store:
            self.store().version("")

    @property
    def _has_store(self) -> bool:
        """Whether there can be rules: a database is configured for them, or the shared one has
        their tables, or the file of one exists."""
        if self._store is not None or self.settings.database_url_env is not None:
            return True
        if not self._is_shared:
            return self._database_file.exists()
        if not self._has_tables:
            from unified_flow.shared.database import database_at

            sql = "SELECT to_regclass('ai_rules') IS NOT NULL"
            self._has_tables = database_at(self.home).row(sql) == (True,)
        return self._has_tables

    @cached_property
    def _database_file(self) -> Path:
        return state_folder(self.home) / DATABASE_FILE

    @cached_property
    def _is_shared(self) -> bool:
        """Read once, as the other settings are: every turn asks."""
        return bool(settings_of(self.home, SharedSettings).database_url_env)

    def store(self) -> GuardrailStore:
        """Opened once. Raises ConfigError where the extra is missing."""
        with self._opening:
            if self._store is None:
                self._store = open_store(self.home, self.settings)
        return self._store

    async def admits(self, ledger: Ledger, ends_at: float | None = None) -> bool:
        """Whether the message may be answered. A resumed turn keeps its decision.

        `ends_at`, on the loop's clock, is the turn's deadline: an unfinished check then counts as
        failed, and records are written without the turn. None: no bound.
        """
        turn = ledger.turn
        if turn.pre is not None:
            return turn.pre.decision == "pass"
        result = await self._fail_closed(turn, self._check_message(ledger, ends_at), ends_at)
        if result is None:
            return True
        result = await self._apply_shadow_mode(turn, "pre", result, {}, ends_at)
        await _record(ledger, "pre", result)
        if not result.passes:
            log_block(turn, "pre", result)
            recording = self.recorder.blocked(ledger.turn, self.store(), "pre", result)
            await self.recorder.in_time(recording, ends_at)
        return result.passes

    async def releases(self, ledger: Ledger, reply: str, ends_at: float | None = None) -> bool:
        """Whether `reply` may be given; `ends_at` as in `admits`. If not, the session loses it, the
        message that it answers, and the memories that the turn has made."""
        turn = ledger.turn
        if turn.post is not None:
            # It was released before; the process may have died before that was recorded.
            await self.recorder.in_time(self.recorder.answered(turn, self.store()), ends_at)
            return True
        checking = self._check(turn, "post", reply, ends_at)
        checked = await self._fail_closed(turn, checking, ends_at)
        more = {"reply": reply[:REPLY_CHARS]}
        result = await self._apply_shadow_mode(turn, "post", checked or PASS, more, ends_at)
        if not result.passes:
            log_block(turn, "post", result)
            # First: should the process die in between, the reply is checked once more.
            gone = await self.recorder.in_time(self._take_back(turn), ends_at)
            if gone:
                more["forgotten"] = "\n".join(record.text for record in gone)[:REPLY_CHARS]
        if checked is not None:
            await _record(ledger, "post", result)
        if not result.passes:
            recording = self.recorder.blocked(turn, self.store(), "post", result, more)
            await self.recorder.in_time(recording, ends_at)
        elif self.always or turn.pre is not None:
            await self.recorder.in_time(self.recorder.answered(ledger.turn, self.store()), ends_at)
        return result.passes

    def tried(self, attempt: int, message: str) -> None:
        """A model that has failed is asked again."""
        if self.always:
            logger.warning("[LLM RETRY] Attempt %d/%d failed: %s", attempt, MAX_ATTEMPTS, message)

    def succeeded(self, attempt: int) -> None:
        if self.always and attempt > 1:
            logger.info("[LLM RETRY] Success on attempt %d/%d", attempt, MAX_ATTEMPTS)

    async def failed(self, turn: Turn, error: PhaseError) -> None:
        """The turn ends in silence because something failed."""
        log_failure(turn, error)
        await self.recorder.silenced(turn, self.store())

    def count(self) -> tuple[int, int] | None:
        """(rules, users); None where there is no database yet. Raises as `store` does."""
        if not self._has_store:
            return None
        everybody = self.store().all_rules()
        return sum(len(list(rules.rules())) for rules in everybody), len(everybody)

    async def try_moderation(self) -> str | None:
        """What is wrong with it, if anything."""
        assert self.moderator is not None
        outcome = await self.moderator.moderate("hello", self.settings.moderation_timeout_s)
        return str(outcome.error) if isinstance(outcome, ModerationFailed) else None

    def stats_of_today(self) -> GuardrailStats | None:
        """None where there is no database yet. Raises RetrievalError."""
        return stats_of(self.store().by_day(1), 1) if self._has_store else None

    async def aclose(self) -> None:
        await self.recorder.aclose()
        if self.moderator is not None:
            await self.moderator.aclose()
        if self._store is not None:
            self._store.close()

    async def _check_message(self, ledger: Ledger, ends_at: float | None) -> GuardrailResult | None:
        result = await self._check(ledger.turn, "pre", ledger.turn.question, ends_at)
        history = ledger.turn.history
        if result is not None and result.passes and history and not self.settings.shadow:
            kept = await self._allowed_history(ledger.turn, history, ends_at)
            if len(kept) < len(history):
                await ledger.record_always(HistoryRead(phase="query_analyzer", turns=kept))
        return result

    async def _check(
        self, turn: Turn, stage: Stage, text: str, ends_at: float | None
    ) -> GuardrailResult | None:
        """None where nothing is configured for this user. The cheapest check comes first, and a
        text that is blocked already is sent to no endpoint."""
        result = None
        if stage == "pre" or self.settings.check_replies:
            try:
                async with asyncio.timeout_at(ends_at):
                    active = await self._rules_of(turn.user_id)
            except (RetrievalError, TimeoutError) as exc:
                await self.recorder.report(exc, turn, ends_at)
                return UNREADABLE
            if active is not None and stage == "pre":
                result = await asyncio.to_thread(
                    of_rules, active.rules, active.matcher, turn.channel, text
                )
            elif active is not None:
                result = await asyncio.to_thread(of_reply, active.matcher, text)
        if self.moderator is None or (result is not None and not result.passes):
            return result
        return await self._moderate(turn, text, stage, ends_at)

    async def _apply_shadow_mode(
        self,
        turn: Turn,
        stage: Stage,
        result: GuardrailResult,
        more: Mapping[str, str],
        ends_at: float | None,
    ) -> GuardrailResult:
        """In shadow mode whatever is found is recorded, and passes; AI that its user has switched
        off stays off."""
        if not self.settings.shadow or result.passes or result.switched_off:
            return result
        recording = self.recorder.shadowed(turn, self.store(), stage, result, more)
        await self.recorder.in_time(recording, ends_at)
        return replace(result, decision="pass")

    async def _allowed_history(
        self, turn: Turn, history: Sequence[PriorTurn], ends_at: float | None
    ) -> list[PriorTurn]:
        """The part of the caller's history that the model may see: a front end sends the blocked
        messages of a conversation again with every later one."""
        async with asyncio.timeout_at(ends_at):
            active = await self._rules_of(turn.user_id)
        checks = [self._passes(turn, each, active, ends_at) for each in history]
        passed = await asyncio.gather(*checks)
        return [each for each, passes in zip(history, passed, strict=True) if passes]

    async def _moderate(
        self, turn: Turn, text: str, stage: Stage, ends_at: float | None
    ) -> GuardrailResult:
        if self.moderator is None or not text:
            return PASS
        own_s = self.settings.moderation_timeout_s
        timeout_s = own_s if ends_at is None else min(own_s, left_s(ends_at))
        outcome = await self.moderator.moderate(text, timeout_s)
        if isinstance(outcome, ModerationFailed):
            await self.recorder.report(outcome.error, turn, ends_at)
        return of_moderation(
            outcome,
            stage=stage,
            fails_open=self.settings.moderation_failure == "fail_open",
            escalate=self.settings.escalate_categories,
        )

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
        return (await self._moderate(turn, text, "pre", ends_at)).passes

    async def _rules_of(self, user_id: str) -> ActiveRules | None:
        if not self._has_store:
            return None
        return await asyncio.to_thread(self.store().active_rules, user_id)

    async def _fail_closed(
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
            await self.recorder.report(exc, turn, ends_at)
            return BROKEN

    async def _take_back(self, turn: Turn) -> list[MemoryRecord]:
        """Removes the turn from its session, and what it has remembered of its user, which is
        returned. Silence holds whatever fails here; a person removes the rest."""
        try:
            await asyncio.to_thread(self.sessions.take_back, turn)
        except RetrievalError as exc:
            logger.critical("turn %s may still be in its session: %s", turn.turn_id, exc)
            await self.recorder.report(exc, turn)
        try:
            return await asyncio.to_thread(self.memory.forget, turn.user_id, turn.turn_id)
        except RetrievalError as exc:
            logger.critical("what turn %s remembered may stay: %s", turn.turn_id, exc)
            await self.recorder.report(exc, turn)
            return []


async def _record(ledger: Ledger, stage: Stage, result: GuardrailResult) -> None:
    await ledger.record_always(GuardrailChecked(stage=stage, **asdict(result)))


def open_store(home: Path, settings: GuardrailSettings) -> GuardrailStore:
    """The database is opened on first use, its modules are loaded here: without rules nobody pays
    for SQLAlchemy, nor needs the extra. Raises ConfigError without the extra, and for a variable
    that holds no URL."""
    with needs_extra("guarding messages", "guardrails"):
        import ahocorasick  # noqa: F401 - of this extra alone, and used later

        from unified_flow.guardrails.sql_database import SqlDatabase
        from unified_flow.guardrails.store import WAITING, GuardrailStore

    state = state_folder(home)
    if variable := settings.database_url_env or settings_of(home, SharedSettings).database_url_env:
        database = SqlDatabase.of_variable(variable)
    else:
        database = SqlDatabase.of_file(state / DATABASE_FILE)
    return GuardrailStore(database, state / WAITING)
