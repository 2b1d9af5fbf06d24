"""The log lines of silent-errors-and-guardrails.md, word for word."""

from __future__ import annotations

import logging

from interventions.secrets.redaction import redact_text
from unified_flow.guardrails.decision import GuardrailResult, Stage
from unified_flow.phases.errors import PhaseError
from unified_flow.policies.silent import MAX_RETRIES
from unified_flow.turns.turn import Turn

logger = logging.getLogger("unified_flow.guardrails")


def blocked(turn: Turn, stage: Stage, result: GuardrailResult) -> None:
    reason = redact_text(result.reason)
    if stage == "pre":
        done = "left to a person" if result.decision == "escalate" else "blocked"
        logger.info("[GUARDRAILS PRE] Message flagged and %s: %s", done, reason)
        logger.info("[SILENT FAILURE] Pre-guardrail blocked message for user %s", turn.user_id)
    else:
        logger.info("[GUARDRAILS POST] Generated response flagged: %s", reason)
        logger.info("[GUARDRAILS POST] Removing triggering user message from context")
        logger.info("[SILENT FAILURE] Post-guardrail blocked response for user %s", turn.user_id)


def tried(attempt: int, message: str) -> None:
    logger.warning("[LLM RETRY] Attempt %d/%d failed: %s", attempt, MAX_RETRIES, message)


def succeeded(attempt: int) -> None:
    logger.info("[LLM RETRY] Success on attempt %d/%d", attempt, MAX_RETRIES)


def failed(turn: Turn, error: PhaseError) -> None:
    if error.scope == "model" and error.attempts >= MAX_RETRIES:
        why = redact_text(str(error.__cause__))
        logger.error(
            "[LLM ERROR] Max retries (%d) reached for user %s: %s", MAX_RETRIES, turn.user_id, why
        )
    kind = "LLM error" if (turn.error_message or "").startswith("LLM_ERROR") else "Error"
    logger.error("[SILENT FAILURE] %s for user %s: %s", kind, turn.user_id, turn.error_message)
