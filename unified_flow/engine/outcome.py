"""What an error means for the caller, decided once; `process_request` and HTTP phrase it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from unified_flow.engine.phase_table import BY_NAME
from unified_flow.errors import DatabaseAwayError, InputError, NoTurnError, QueueFullError
from unified_flow.errors.classification import classify
from unified_flow.errors.safe_messages import Language
from unified_flow.errors.turns import JournalVersionError, TurnStoppedError
from unified_flow.phases.errors import LoopLimitError, PhaseError
from unified_flow.policies import Failure, Policy
from unified_flow.turns.turn import Turn


def phase_error(turn: Turn, language: Language) -> PhaseError:
    """The error with which a failed turn halts, in the process that ran it and in any other."""
    assert turn.failure is not None
    limit = turn.failure.limit is not None
    error = LoopLimitError if limit else BY_NAME[turn.failure.phase].ERROR
    return error(turn, language)


@dataclass(frozen=True)
class Outcome:
    """`silenced`: the client gets no message, whatever `answer` is. `unreported`: no intervention
    exists for it yet."""

    answer: Literal["refused", "stopped", "halted", "degraded", "unavailable", "unexpected"]
    silenced: bool = False
    unreported: bool = False


def outcome_of(
    error: Exception, policy: Policy, *, chosen: Collection[str] | None = None
) -> Outcome:
    """What becomes of an error that `UnifiedFlow.process` has raised. What went wrong outside every
    phase ends as the policy ends a phase's failure; what the caller has to mend is no failure, and
    never silenced. `chosen` are the fields that are the caller's own (`InputError.field`); None:
    all of them, as for who has made the flow, too."""
    if isinstance(error, PhaseError):
        degraded = error.answer == "degrade"
        return Outcome("degraded" if degraded else "halted", silenced=error.answer == "silence")
    if isinstance(error, InputError) and (chosen is None or error.field in chosen):
        return Outcome("refused")
    failure = Failure("unknown", None, 1, classify(error, "answer_pipeline"), error)
    silenced = policy.ends(failure).answer == "silence"
    if isinstance(error, QueueFullError | DatabaseAwayError | JournalVersionError):
        # A failure would find no room either; the turn may begin in a moment, or be with a service
        # of a newer version.
        return Outcome("unavailable", silenced)
    if isinstance(error, TurnStoppedError):
        return Outcome("stopped", silenced)
    if isinstance(error, NoTurnError):
        return Outcome("unavailable", silenced, unreported=True)
    return Outcome("unexpected", silenced, unreported=True)
