"""The result of a check, and the pure functions from findings to results.

The words are those of silent-errors-and-guardrails.md ("Guardrails", "Logging & Audit").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from unified_flow.guardrails.decisions import Outcome
from unified_flow.guardrails.moderator import Moderated, ModerationFailed

if TYPE_CHECKING:
    # Importing these takes longer than a flow without rules takes to start.
    from unified_flow.guardrails.matcher import Match, Matcher
    from unified_flow.guardrails.user_rules import UserRules

Stage = Literal["pre", "post"]
SCOPE = "scope:"
AS_WRITTEN, IN_DISGUISE = 0.95, 0.9


@dataclass(frozen=True)
class GuardrailResult:
    """`confidence` 0..1; `matched_rule` such as `flagged_keyword:spam`, None where none matched;
    `failed`: it could not be checked."""

    decision: Literal["block", "pass", "escalate"]
    reason: str = ""
    confidence: float = 1.0
    matched_rule: str | None = None
    failed: bool = False

    @property
    def passes(self) -> bool:
        return self.decision == "pass"

    @property
    def switched_off(self) -> bool:
        """Whether the user wants no answers at all, so that nothing was searched."""
        return (self.matched_rule or "").startswith(SCOPE)

    def as_state(self) -> dict[str, Any]:
        """The state field `guardrail_pre_result`."""
        return {"decision": self.decision, "reason": self.reason, "confidence": self.confidence}


PASS = GuardrailResult("pass")
UNREADABLE = GuardrailResult("block", "The rules cannot be read", 0.0, "rules_failed", failed=True)
BROKEN = GuardrailResult("block", "A guardrail failed", 0.0, "guardrails_failed", failed=True)


def outcome_of(stage: Stage, result: GuardrailResult) -> Outcome:
    """The `outcome` in `ai_decisions` of a message that does not pass."""
    if result.decision == "escalate":
        return "escalated"
    if result.failed:
        return "check_failed"
    if result.switched_off:
        return "switched_off"
    return "pre_blocked" if stage == "pre" else "post_blocked"


def of_scope(rules: UserRules, channel: str | None) -> GuardrailResult:
    column = rules.off_switch(channel)
    if column is None:
        return PASS
    where = {"ai_enabled_for_chats": "chats", "ai_enabled_for_comments": "comments"}
    reason = f"AI is off for {where.get(column, 'this user')}"
    return GuardrailResult("block", reason, 1.0, f"{SCOPE}{column}")


def of_matches(matches: Sequence[Match]) -> GuardrailResult:
    """A block wins over an escalation; else the first match counts."""
    if not matches:
        return PASS
    first = next((match for match in matches if not match.rule.escalates), matches[0])
    rule = first.rule
    word = "Escalation" if rule.escalates else "Flagged"
    return GuardrailResult(
        "escalate" if rule.escalates else "block",
        f"{word} {rule.kind} detected: '{rule.text}'",
        IN_DISGUISE if first.disguised else AS_WRITTEN,
        f"{'escalate' if rule.escalates else 'flagged'}_{rule.kind}:{rule.text}",
    )


def of_rules(rules: UserRules, matcher: Matcher, channel: str | None, text: str) -> GuardrailResult:
    """The result of a user's own rules; where AI is off, the text is not searched."""
    result = of_scope(rules, channel)
    return of_matches(matcher.matches(text)) if result.passes else result


def of_reply(matcher: Matcher, reply: str) -> GuardrailResult:
    """By a user's flagged words; those that escalate are about what a person has asked."""
    return of_matches([match for match in matcher.matches(reply) if not match.rule.escalates])


def of_moderation(
    outcome: Moderated | ModerationFailed,
    *,
    stage: Stage,
    fails_open: bool,
    escalate: Collection[str] = (),
) -> GuardrailResult:
    """`escalate`: categories that go to a person; a reply that has them is blocked all the same."""
    if isinstance(outcome, ModerationFailed):
        reason = f"Moderation failed: {outcome.reason}"
        decision: Literal["pass", "block"] = "pass" if fails_open else "block"
        return GuardrailResult(decision, reason, 0.0, "moderation_failed", failed=True)
    if not outcome.flagged:
        return PASS
    named = ", ".join(outcome.categories) or "flagged"
    person = stage == "pre" and not set(escalate).isdisjoint(outcome.categories)
    return GuardrailResult(
        "escalate" if person else "block",
        f"OpenAI Moderation: {named}" if stage == "pre" else f"Violates: {named}",
        max(outcome.categories.values(), default=1.0),
        "openai_moderation",
    )
