"""Silence is never loss: what was decided goes to `ai_decisions`, and to a person where one is
needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from interventions import InterventionQueue, InterventionRequest
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import HumanNeededError, UnifiedFlowError
from unified_flow.errors.classification import classify
from unified_flow.guardrails.decision import GuardrailResult, Stage, outcome_of
from unified_flow.guardrails.outcomes import BLOCKS, FAILURES, Outcome
from unified_flow.turns.folding import GUARDRAILS
from unified_flow.turns.sessions.messages import message_ids
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.guardrails.store import Decision, GuardrailStore

T = TypeVar("T")

logger = logging.getLogger("unified_flow.guardrails")
REPLY_CHARS = 500


def left_s(by: float) -> float:
    """Seconds until `by`, on the loop's clock."""
    return max(0.0, by - asyncio.get_running_loop().time())


class SpikeOfBlocksError(UnifiedFlowError):
    """Many messages or replies were blocked within a short time."""


class SpikeOfSilentFailuresError(UnifiedFlowError):
    """Many messages went unanswered within a short time because something failed."""


class Recorder:
    """Writes in threads. Its own trouble is told, and costs nobody an answer or a silence."""

    def __init__(self, queue: InterventionQueue, settings: GuardrailSettings) -> None:
        self._queue = queue
        self._settings = settings
        self._going_on: set[asyncio.Task[Any]] = set()
        self._alerted: dict[tuple[Outcome, ...], float] = {}

    async def decided(
        self,
        turn: Turn,
        store: GuardrailStore,
        stage: Stage,
        result: GuardrailResult,
        more: Mapping[str, str] | None = None,
        *,
        by: float | None = None,
    ) -> None:
        """Blocked, or left to a person; `more` is for the snapshot, such as what was not said."""
        await self.in_time(self._decided(turn, store, stage, result, more or {}), by)

    async def _decided(
        self,
        turn: Turn,
        store: GuardrailStore,
        stage: Stage,
        result: GuardrailResult,
        more: Mapping[str, str],
    ) -> None:
        escalated = result.decision == "escalate"
        snapshot: dict[str, Any] = {"stage": stage, **more}
        if escalated:
            needed = HumanNeededError(result.reason, hint="answer it in the conversation itself")
            snapshot["intervention_id"] = await self.tell(needed, turn)
        await self._keep(
            store,
            turn,
            decision="escalate" if escalated else "ignore",
            confidence=result.confidence,
            reason=result.reason,
            matched_rule=result.matched_rule,
            outcome=outcome_of(stage, result),
            more=snapshot,
        )

    async def answered(self, turn: Turn, store: GuardrailStore, *, by: float | None = None) -> None:
        checks = [check for check in (turn.pre, turn.post) if check is not None]
        unchecked = next((check for check in checks if check.failed), None)
        keeping = self._keep(
            store,
            turn,
            decision="respond",
            confidence=1.0 if unchecked is None else 0.0,
            reason="" if unchecked is None else unchecked.reason,
            matched_rule=None if unchecked is None else unchecked.matched_rule,
            outcome="passed",
        )
        await self.in_time(keeping, by)

    async def silent(self, turn: Turn, store: GuardrailStore) -> None:
        """A failure that its policy keeps from the user; its intervention is there already."""
        assert turn.failure is not None
        asked = turn.failure.error_type == HumanNeededError.__name__
        await self._keep(
            store,
            turn,
            decision="escalate" if asked else "ignore",
            confidence=1.0,
            reason=turn.error_message or "",
            matched_rule=None,
            outcome="escalated" if asked else "llm_error",
            more={"phase": turn.failure.phase, "intervention_id": turn.failure.intervention_id},
        )

    async def tell(self, error: Exception, turn: Turn, by: float | None = None) -> str | None:
        """The id of the intervention; None if the queue had no room, or has not answered yet."""
        return await self.in_time(asyncio.to_thread(self._put, error, turn, "high"), by)

    async def in_time(self, work: Coroutine[Any, Any, T], by: float | None) -> T | None:
        """What comes of it. None once the turn's time is up: it goes on then without the turn."""
        if by is None:
            return await work
        task = asyncio.create_task(work)
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)
        await asyncio.wait({task}, timeout=left_s(by))
        return task.result() if task.done() else None

    async def aclose(self) -> None:
        """Once what goes on has come to its end."""
        await asyncio.gather(*self._going_on, return_exceptions=True)

    def _put(self, error: Exception, turn: Turn, severity: str) -> str | None:
        meaning = classify(error, "answer_pipeline")
        request = InterventionRequest.from_exception(
            error,
            type=meaning.intervention_type,
            severity=severity,
            phase=GUARDRAILS,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            request_id=turn.request_id,
            error_category=meaning.category,
            context={
                "query": turn.question,
                "user_id": turn.user_id,
                "channel": turn.channel,
                "hint": getattr(error, "hint", None),
            },
        )
        return self._queue.put(request).intervention_id

    async def _keep(
        self,
        store: GuardrailStore,
        turn: Turn,
        *,
        more: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        from unified_flow.guardrails.store import Decision

        decision = Decision(
            user_id=turn.user_id,
            message_id=str(message_ids(turn)[0]),
            message_text=turn.question,
            retry_count=turn.retry_count,
            snapshot_json={
                "session_id": turn.session_id,
                "turn_id": turn.turn_id,
                "request_id": turn.request_id,
                "channel": turn.channel,
                "policy": turn.policy,
                **(more or {}),
            },
            **fields,
        )
        await asyncio.to_thread(self._write, decision, store, turn)

    def _write(self, decision: Decision, store: GuardrailStore, turn: Turn) -> None:
        try:
            store.record(decision)
            for outcomes, error in (
                (BLOCKS, SpikeOfBlocksError),
                (FAILURES, SpikeOfSilentFailuresError),
            ):
                if decision.outcome in outcomes and self._is_spike(store, outcomes):
                    self._put(self._alert(error), turn, "critical")
        except Exception as exc:  # noqa: BLE001 - whatever it is, the silence holds
            logger.critical("a decision (%s) could not be kept: %s", decision.decision, exc)
            self._put(exc, turn, "critical")

    def _alert(self, error: type[UnifiedFlowError]) -> UnifiedFlowError:
        within = f"{self._settings.alert_count} or more within {self._settings.alert_window_s:g} s"
        return error(within, hint="unified-flow guardrails stats; unified-flow decisions list")

    def _is_spike(self, store: GuardrailStore, outcomes: tuple[Outcome, ...]) -> bool:
        """Once a window; the queue merges what other processes say of the same."""
        window_s = self._settings.alert_window_s
        last = self._alerted.get(outcomes)
        if last is not None and monotonic() - last < window_s:
            return False
        since = datetime.now(UTC) - timedelta(seconds=window_s)
        if store.count_since(since, outcomes) < self._settings.alert_count:
            return False
        self._alerted[outcomes] = monotonic()
        return True
