"""Silence is never loss: every decision goes to `ai_decisions` and to the log, and to a person
where one is needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from interventions import InterventionQueue, InterventionRequest
from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import HumanNeededError, UnifiedFlowError
from unified_flow.errors.classification import classify
from unified_flow.guardrails.decisions import BLOCKS, FAILURES, Choice, Outcome, RecordedDecision
from unified_flow.guardrails.verdict import PASS, GuardrailResult, Stage, outcome_of
from unified_flow.phases.errors import PhaseError
from unified_flow.policies import MAX_ATTEMPTS
from unified_flow.turns.events import GuardrailChecked
from unified_flow.turns.fold import GUARDRAILS
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.message import message_ids

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore

T = TypeVar("T")

logger = logging.getLogger("unified_flow.guardrails")
REPLY_CHARS = 500


def left_s(ends_at: float) -> float:
    """Seconds until `ends_at`, on the loop's clock."""
    return max(0.0, ends_at - asyncio.get_running_loop().time())


class SpikeOfBlocksError(UnifiedFlowError):
    """Many messages or replies were blocked within a short time."""


class SpikeOfSilentFailuresError(UnifiedFlowError):
    """Many messages went unanswered within a short time because something failed."""


class Recorder:
    """Writes in threads. Its own failures are reported, and cost no answer and no silence.
    `in_time` bounds what it does by the time that a turn has."""

    def __init__(self, queue: InterventionQueue, settings: GuardrailSettings) -> None:
        self._queue = queue
        self._settings = settings
        self._unfinished: set[asyncio.Task[Any]] = set()
        self._alerted: dict[tuple[Outcome, ...], float] = {}

    async def blocked(
        self,
        turn: Turn,
        store: GuardrailStore,
        stage: Stage,
        result: GuardrailResult,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Blocked, or left to a person; `more` is for the snapshot, such as the blocked reply."""
        escalated = result.decision == "escalate"
        snapshot: dict[str, Any] = {"stage": stage, **(more or {})}
        if escalated:
            needed = HumanNeededError(result.reason, hint="answer it in the conversation itself")
            snapshot["intervention_id"] = await self.report(needed, turn)
        choice: Choice = "escalate" if escalated else "ignore"
        await self._record(store, turn, choice, outcome_of(stage, result), result, snapshot)

    async def shadowed(
        self,
        turn: Turn,
        store: GuardrailStore,
        stage: Stage,
        result: GuardrailResult,
        more: Mapping[str, str],
    ) -> None:
        """Would have been blocked, or left to a person; `more` as in `blocked`."""
        logger.info("[GUARDRAILS %s] Would block: %s", stage.upper(), redact_text(result.reason))
        would_be = "escalate" if result.decision == "escalate" else "ignore"
        outcome: Outcome = "pre_shadowed" if stage == "pre" else "post_shadowed"
        snapshot = {"stage": stage, "would_be": would_be, **more}
        await self._record(store, turn, "respond", outcome, result, snapshot)

    async def answered(self, turn: Turn, store: GuardrailStore) -> None:
        checks = [check for check in (turn.pre, turn.post) if check is not None]
        unchecked = next((check for check in checks if check.failed), PASS)
        await self._record(store, turn, "respond", "passed", unchecked)

    async def silenced(self, turn: Turn, store: GuardrailStore) -> None:
        """A failure that its policy keeps from the user; its intervention is there already."""
        assert turn.failure is not None
        escalated = turn.failure.error_type == HumanNeededError.__name__
        snapshot = {
            "phase": turn.failure.phase,
            "intervention_id": turn.failure.intervention_id,
        }
        result = GuardrailResult("escalate" if escalated else "block", turn.error_message or "")
        choice: Choice = "escalate" if escalated else "ignore"
        outcome: Outcome = "escalated" if escalated else "llm_error"
        await self._record(store, turn, choice, outcome, result, snapshot)

    async def report(
        self, error: Exception, turn: Turn, ends_at: float | None = None
    ) -> str | None:
        """The id of the intervention; None if the queue had no room, or has not answered yet."""
        return await self.in_time(asyncio.to_thread(self._put, error, turn, "high"), ends_at)

    async def in_time(self, work: Coroutine[Any, Any, T], ends_at: float | None) -> T | None:
        """The result of `work`. None once the turn's time is up: it goes on without the turn."""
        if ends_at is None:
            return await work
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        await asyncio.wait({task}, timeout=left_s(ends_at))
        return task.result() if task.done() else None

    async def aclose(self) -> None:
        """Waits for the work that goes on without its turn."""
        await asyncio.gather(*self._unfinished, return_exceptions=True)

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

    async def _record(
        self,
        store: GuardrailStore,
        turn: Turn,
        choice: Choice,
        outcome: Outcome,
        result: GuardrailResult | GuardrailChecked,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        decision = RecordedDecision(
            user_id=turn.user_id,
            message_id=str(message_ids(turn)[0]),
            decision=choice,
            confidence=result.confidence,
            reason=result.reason,
            matched_rule=result.matched_rule,
            message_text=turn.question,
            outcome=outcome,
            retry_count=turn.retry_count,
            snapshot_json={
                "session_id": turn.session_id,
                "turn_id": turn.turn_id,
                "request_id": turn.request_id,
                "channel": turn.channel,
                "policy": turn.policy,
                **(more or {}),
            },
        )
        await asyncio.to_thread(self._write, decision, store, turn)

    def _write(self, decision: RecordedDecision, store: GuardrailStore, turn: Turn) -> None:
        try:
            store.record(decision)
            for outcomes, error in (
                (BLOCKS, SpikeOfBlocksError),
                (FAILURES, SpikeOfSilentFailuresError),
            ):
                if decision.outcome in outcomes and self._is_spike(store, outcomes):
                    self._put(self._alert(error), turn, "critical")
        except Exception as exc:  # noqa: BLE001 - whatever it is, the silence holds
            logger.critical("a decision (%s) could not be recorded: %s", decision.decision, exc)
            self._put(exc, turn, "critical")

    def _alert(self, error: type[UnifiedFlowError]) -> UnifiedFlowError:
        within = f"{self._settings.alert_count} or more within {self._settings.alert_window_s:g} s"
        return error(within, hint="unified-flow guardrails show; unified-flow decisions list")

    def _is_spike(self, store: GuardrailStore, outcomes: tuple[Outcome, ...]) -> bool:
        """Whether to alert: once a window; the queue merges the alerts of other processes."""
        window_s = self._settings.alert_window_s
        last = self._alerted.get(outcomes)
        if last is not None and monotonic() - last < window_s:
            return False
        since = datetime.now(UTC) - timedelta(seconds=window_s)
        if store.count_since(since, outcomes) < self._settings.alert_count:
            return False
        self._alerted[outcomes] = monotonic()
        return True


def log_block(turn: Turn, stage: Stage, result: GuardrailResult) -> None:
    """The log lines are those of silent-errors-and-guardrails.md, word for word."""
    reason = redact_text(result.reason)
    if stage == "pre":
        done = "left to a person" if result.decision == "escalate" else "blocked"
        logger.info("[GUARDRAILS PRE] Message flagged and %s: %s", done, reason)
        logger.info("[SILENT FAILURE] Pre-guardrail blocked message for user %s", turn.user_id)
    else:
        logger.info("[GUARDRAILS POST] Generated response flagged: %s", reason)
        logger.info("[GUARDRAILS POST] Removing triggering user message from context")
        logger.info("[SILENT FAILURE] Post-guardrail blocked response for user %s", turn.user_id)


def log_failure(turn: Turn, error: PhaseError) -> None:
    if error.scope == "model" and error.attempts >= MAX_ATTEMPTS:
        why = error.failure.error_message
        logger.error(
            "[LLM ERROR] Max retries (%d) reached for user %s: %s", MAX_ATTEMPTS, turn.user_id, why
        )
    kind = "LLM error" if (turn.error_message or "").startswith("LLM_ERROR") else "Error"
    logger.error("[SILENT FAILURE] %s for user %s: %s", kind, turn.user_id, turn.error_message)
