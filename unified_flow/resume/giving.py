"""What a person gives the call that the turn stopped at: leave to run, or an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interventions import InterventionQueue
from interventions.errors import QueueError
from unified_flow.engine.services import Services
from unified_flow.errors import HumanNeededError, ToolDeniedError
from unified_flow.errors.turns import NotResumableError
from unified_flow.tools.permission.grants import SCOPES
from unified_flow.turns.events import Given
from unified_flow.turns.folding import OUTPUT
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.turn import Turn

DENIED = ToolDeniedError.__name__
ASKED = HumanNeededError.__name__


def given(
    services: Services,
    turn: Turn,
    *,
    grant: str | None,
    answer: str | None,
    edited: Mapping[str, Any],
    rewound: bool,
) -> Given | None:
    """What the call that waits is given. A grant for longer than once is for the caller to keep,
    once the turn goes on.

    Raises NotResumableError for an answer that is missing, and for a grant that nothing waits for
    or that the configuration forbids.
    """
    failure = turn.failure
    request = waiting_call(turn, edited)
    if grant is not None and grant not in SCOPES:
        raise NotResumableError(
            f"{grant!r} is no way to grant", hint=f"it is {', '.join(SCOPES[:-1])} or {SCOPES[-1]}"
        )
    if failure is not None and failure.error_type == ASKED and request is not None:
        if grant is not None:
            raise NotResumableError(
                f"turn {turn.turn_id} waits for an answer, so there is nothing to grant",
                hint=f'unified-flow resume {turn.turn_id} --note "the answer"',
            )
        said = answer or noted(services.queue, turn, failure.intervention_id)
        if said is None and rewound:
            return None  # it may go another way, and ask again if it does not
        if said is None:
            raise NotResumableError(
                f"turn {turn.turn_id} waits for an answer to: {failure.error_message}",
                hint=f'unified-flow resume {turn.turn_id} --note "the answer"',
            )
        return Given(tool=request.tool, args=request.args, answer=said)
    if grant is None:
        return None
    if failure is None or failure.error_type != DENIED or request is None:
        raise NotResumableError(
            f"no tool was refused when turn {turn.turn_id} stopped, so there is nothing to grant"
        )
    _must_be_grantable(services, turn, request)
    return Given(tool=request.tool, args=request.args, grant=grant)


def waiting_call(turn: Turn, edited: Mapping[str, Any]) -> ToolRequest | None:
    """The plan's first request without a result, where the coordinator stopped."""
    if turn.failure is None or turn.failure.phase != "coordinator":
        return None
    plan = turn.sections.planner
    if "planner" in edited:
        plan = OUTPUT["planner"].validate_python(edited["planner"])
    if plan is None:
        return None
    return next((r for n, r in enumerate(plan.tool_requests) if n not in turn.tools_done), None)


def noted(queue: InterventionQueue, turn: Turn, intervention_id: str | None) -> str | None:
    """The note of the turn's own question that somebody has resolved; a dismissal is no answer,
    nor is what was said to another failure with which the queue merged this one."""
    if intervention_id is None:
        return None
    try:
        entry = queue.find(intervention_id)
    except QueueError:
        return None
    if entry["type"] != "escalation" or entry["turn_id"] != turn.turn_id:
        return None
    last = (entry.get("resolutions") or [{}])[-1]
    if not entry.get("resolved_at") or last.get("kind") != "resolved":
        return None
    return last.get("note") or None


def _must_be_grantable(services: Services, turn: Turn, request: ToolRequest) -> None:
    tools = {tool.name: tool for tool in services.toolbox}
    tool = tools.get(request.tool)
    if tool is None:
        return  # of a server that is not connected yet: its call passes the gate like any other
    decision = services.gate.decide(tool, turn.session_id)
    if decision.verdict == "denied":
        raise NotResumableError(
            f"{request.tool} cannot be granted: {decision.why}",
            hint="mend tools.deny in unified_flow.toml",
        )
