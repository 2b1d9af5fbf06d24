"""How a turn ended: for scripts as one JSON object and an exit code, for a person as the answer
with its sources, or as a card that says what failed and how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interventions.cli.terminal import Code, note
from interventions.entry import short_id
from interventions.errors import QueueError
from interventions.plaintext import clean, home_flag, one_line
from interventions.secrets.redaction import redact, redact_for_asker, redact_text
from interventions.view.ribbon import phases
from unified_flow.cli.answer import show_answer
from unified_flow.cli.terminal import beginning, on_terminal
from unified_flow.engine.failure_report import ribbon
from unified_flow.errors import HumanNeededError, ToolDeniedError, UnifiedFlowError, wire_name
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.resumption import ResumeResult
from unified_flow.turns.sources import citation_for_asker
from unified_flow.turns.turn import Turn

MESSAGE_CHARS = 600
FIXES_SHOWN = 2


def of_turn(turn: Turn, error: PhaseError | None = None) -> dict[str, Any]:
    """The object of `ask --json`; a failed turn adds what is known of the failure."""
    status = "failed" if error else turn.status
    response = redact_for_asker(turn.response or "")
    outcome: dict[str, Any] = {
        "response": None if error or turn.response is None else response,
        "status": status,
        "understood_as": understood_as(turn),
        "clarification_question": response if status == "clarify" else None,
        "citations": []
        if error
        else [citation_for_asker(c).model_dump(mode="json") for c in turn.citations],
        "abstained": turn.abstained and error is None,
        "error": error is not None,
        "session_id": turn.session_id,
        "turn_id": turn.turn_id,
        "fork_of": turn.fork_of,
        "request_id": turn.request_id,
        "saved": turn.saved,
        "phases": turn.phases,
        "model_calls": turn.counters.model_calls,
        "checks": _checks(turn) if error is None else None,
    }
    if error is not None:
        outcome |= {
            "error_type": type(error).__name__,
            "error_category": error.category,
            "phase": error.phase,
            "intervention_id": error.intervention_id,
            "message": str(error),
            "partial": error.partial,
        }
    elif not turn.should_respond:
        outcome |= {
            "should_respond": False,
            "error_message": redact_text(turn.error_message or ""),
            "guardrail_pre_result": redact(turn.guardrail_pre_result),
            "retry_count": turn.retry_count,
            "intervention_id": turn.failure.intervention_id if turn.failure else None,
        }
    elif turn.failure is not None:
        outcome["intervention_id"] = turn.failure.intervention_id
    return outcome


def _checks(turn: Turn) -> dict[str, Any] | None:
    """What the verdict on the answer checked; None for what is none."""
    verdict = turn.sections.validation
    answered = turn.status == "answered" and not turn.abstained and verdict is not None
    return verdict.checks.model_dump() if answered and verdict else None


def understood_as(turn: Turn) -> str | None:
    """The question with what it leans on put in; None if it stands as it was asked."""
    analysis = turn.sections.query_analyzer
    if analysis is None or analysis.reference_resolution.status != "resolved":
        return None
    asked = analysis.resolved_query
    return redact_for_asker(asked) if asked.strip() != turn.question.strip() else None


def of_refusal(error: UnifiedFlowError | QueueError, session_id: str) -> dict[str, Any]:
    """The same where no turn began or went on: bad input or configuration, or a turn that another
    process runs."""
    nothing = of_turn(Turn(status="failed", session_id=session_id))
    return nothing | {
        "error": True,
        "turn_id": None,
        "request_id": None,
        "error_type": wire_name(error),
        "error_category": None,
        "phase": None,
        "intervention_id": None,
        "message": redact_text(str(error)),
        "partial": {},
    }


def exit_code(turn: Turn, error: PhaseError | None) -> Code:
    """4 if a failure could not be queued, even where the user has the answer; else 1 for a turn
    that failed, or 0, also for silence that a policy or a guardrail wants."""
    failure = turn.failure if error is None else error
    if failure is not None and failure.intervention_id is None:
        return Code.QUEUE
    return Code.FAILED if error is not None else Code.DONE


def show_outcome(
    turn: Turn, error: PhaseError | None, home: Path | None, roots: Sequence[Path] = ()
) -> None:
    """`home` is what was named on the command line, for the commands that the card proposes;
    `roots` those of the documents, for places that can be clicked."""
    if error is not None:
        _show_card(turn, error, home)
        return
    waiting = turn.failure.intervention_id if turn.failure else None
    show = f"interventions show {short_id(waiting)}" if waiting else ""
    if not turn.should_respond:
        note(f"no answer: {redact_text(turn.error_message or '')}{f' ({show})' if show else ''}")
        return
    if on_terminal():
        print()
    show_answer(turn, roots)
    checks = _checks(turn)
    if checks is not None and checks["claims_supported"] is not True:
        passages = f"unified-flow turns show {turn.turn_id}{home_flag(home)}"
        note(f"code could not check this answer; compare it with its passages: {passages}")
    if turn.failure is not None:
        note(f"not saved: {turn.failure.error_message} ({show or 'it could not be queued'})")


def show_resumed(resumed: ResumeResult, home: Path | None) -> None:
    show_outcome(resumed.turn, resumed.error, home)
    for line in resumed.difference:
        note(f"  {one_line(line)}")
    if resumed.closed:
        note(f"resolved, verified: {short_id(resumed.closed)}")
    if resumed.trouble:
        retry = resumed.turn.retry
        again = (
            f"; interventions retry {short_id(retry.intervention_id)} closes it" if retry else ""
        )
        trouble = one_line(resumed.trouble)
        note(f"warning: the intervention could not be resolved: {trouble}{again}")
    if resumed.waiting is not None:
        note(f"its intervention stays open: turn {resumed.waiting} waits, too")


def _show_card(turn: Turn, error: PhaseError, home: Path | None) -> None:
    """What broke, where, and the commands to go on."""
    from rich.console import Console, Group
    from rich.panel import Panel
    from rich.text import Text

    title = clean(f"{error.phase} failed: {error.category}, {error.severity}")
    body = Text()
    body.append(" ".join(step.symbol for step in phases(ribbon(turn, failed=error.phase))))
    body.append(f"   turn {error.turn_id}, request {clean(error.request_id)}\n\n", "dim")
    body.append(beginning(str(error), MESSAGE_CHARS), "bold")
    if error.failure.tool:
        body.append(f"\ntool: {clean(error.failure.tool)}")
    if error.hint:
        body.append("\nhint: ", "dim").append(clean(error.hint))
    for fix in _known_fixes(home, error.intervention_id):
        body.append("\nresolved before: ", "dim").append(beginning(fix, MESSAGE_CHARS))
    steps = Text("Next:", "dim")
    if error.intervention_id is None:
        steps.append(
            f"\n  it could not be queued ({error.admission}); see logs/errors/emergency_*",
            "none",
        )
    for command in _next_commands(error):
        steps.append(f"\n  {command}{home_flag(home)}", "cyan not dim")
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(Panel(Group(body, Text(), steps), title=title, border_style="red"))
    else:
        console.print(Group(Text(title), body, steps), soft_wrap=True)


def _known_fixes(home: Path | None, intervention_id: str | None) -> list[str]:
    """How the same failure was resolved before; nothing if the queue cannot be read."""
    from interventions.queue import queue_at
    from interventions.view.description import known_fix

    if intervention_id is None:
        return []
    try:
        return list(map(known_fix, queue_at(home).similar(intervention_id)[:FIXES_SHOWN]))
    except QueueError:
        return []


def _next_commands(error: PhaseError) -> list[str]:
    show_turn = f"unified-flow turns show {error.turn_id}"
    if error.intervention_id is None:
        return [show_turn]
    short = short_id(error.intervention_id)
    match error.failure.error_type:
        case HumanNeededError.__name__:
            resolution = '--note "the answer" --retry'
        case ToolDeniedError.__name__:
            resolution = '--note "it may run" --retry --grant once'
        case _:
            resolution = '--note "what you mended" --retry'
    return [f"interventions show {short}", show_turn, f"interventions resolve {short} {resolution}"]
