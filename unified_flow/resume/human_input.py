"""What a person gives a turn that goes on: decisions about writes, an edited input, a grant or an
answer for the call at which it stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from interventions import InterventionQueue
from interventions.errors import QueueError
from interventions.retry.contract import Ask, BegunCall, CallDecision, Edit
from interventions.storage.disk import keep_draft
from unified_flow.engine.services import Services
from unified_flow.errors import HumanNeededError, InputError, ToolDeniedError
from unified_flow.errors.turns import NotResumableError
from unified_flow.resume.entry_phase import (
    END,
    entry_phase,
    must_not_write_twice,
    writes_at_stake,
)
from unified_flow.tools.grants import SCOPES
from unified_flow.turns.events import HumanInput, Runner, TurnResumed
from unified_flow.turns.fold import OUTPUT, apply
from unified_flow.turns.input_checks import checked_question
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn

DENIED = ToolDeniedError.__name__
ASKED = HumanNeededError.__name__
QUESTION = "question"


@dataclass(frozen=True)
class ResumeRequest:
    """How a person wants the turn to go on.

    `note` closes the intervention once its phase has completed; None leaves that to the caller.
    `edited` replaces what the phase reads (events.TurnResumed). `grant` (once, session or always)
    and `answer` are for the call at which the turn stopped. `seen` is the turn on which the person
    has decided: one that has gone on since is refused.
    """

    from_phase: str | None = None
    rerun_tools: bool = False
    tools_done: bool = False
    intervention_id: str | None = None
    note: str | None = None
    by: str | None = None
    via: str = "library"
    edited: Mapping[str, Any] = field(default_factory=dict)
    grant: str | None = None
    answer: str | None = None
    seen: Turn | None = None


def ask_person(
    request: ResumeRequest, turn: Turn, services: Services, *, ask: Ask | None, edit: Edit | None
) -> ResumeRequest:
    """`request` with the person's answers. `ask` is None if nobody can be asked, `edit` if nobody
    wants to edit. Nothing has happened yet. Raises NotResumableError, and what the two raise."""
    if ask is None and edit is None:
        return request
    start = entry_phase(turn, services.settings.limits, request.from_phase)
    decided = request.rerun_tools or request.tools_done
    if ask is not None and not decided:
        request = _ask_about_writes(request, turn, start, ask)
    elif not decided:
        must_not_write_twice(turn, start, rewound=request.from_phase is not None, tools_done=False)
    if edit is not None:
        edited = _edited(request, turn, start, services, edit)
        request = replace(request, edited=edited, seen=turn)
    return request


def _ask_about_writes(request: ResumeRequest, turn: Turn, start: str, ask: Ask) -> ResumeRequest:
    answers: set[CallDecision] = set()
    for write in writes_at_stake(turn, start, rewound=request.from_phase is not None):
        unfinished = not write.done and request.from_phase is None
        answers.add(ask(BegunCall(turn.turn_id, write.tool, write.args, unfinished)))
        if "leave" in answers:
            raise NotResumableError(f"turn {turn.turn_id} was left as it is")
    if not answers:
        return request
    again, done = "again" in answers, "done" in answers
    return replace(request, rerun_tools=again, tools_done=done, seen=turn)


def _edited(
    request: ResumeRequest, turn: Turn, phase: str, services: Services, edit: Edit
) -> dict[str, Any]:
    """What the person changed of what the phase reads. Raises NotResumableError, and keeps the
    edited text in a file then; RecipeError."""
    if phase == END:
        raise NotResumableError(f"turn {turn.turn_id} has no phase left to edit the input of")
    before = _input_of(services, turn, phase, rewound=request.from_phase is not None)
    name = f"{phase}.json"
    text = edit(name, json.dumps(before, ensure_ascii=False, indent=2) + "\n")
    try:
        return edits(before, text)
    except NotResumableError as exc:
        kept = keep_draft(name, text.encode("utf-8", "surrogatepass"))
        hint = "; ".join(filter(None, (exc.hint, kept)))
        raise NotResumableError(str(exc), hint=hint) from exc


def _input_of(services: Services, turn: Turn, phase: str, *, rewound: bool) -> dict[str, Any]:
    """What a person sees and edits: the question and the sections that the phase reads, as they are
    when it begins. Raises RecipeError."""
    reads = services.recipe(phase).head.reads
    nobody = Runner(user="", host="", pid=0)
    resumed = TurnResumed(
        phase=phase, rewound=rewound, runner=nobody, by="", via="", config_digest=""
    )
    turn = apply(turn, resumed)
    sections = written(turn.sections)
    return {QUESTION: turn.question} | {
        name: sections[name] for name in OUTPUT if name in reads and name in sections
    }


def edits(before: dict[str, Any], text: str) -> dict[str, Any]:
    """What differs, by name, checked. Raises NotResumableError."""
    try:
        after = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise NotResumableError(f"the edited text is not JSON: {exc}") from exc
    if not isinstance(after, dict) or set(after) != set(before):
        raise NotResumableError(
            "a section was added or taken away", hint=f"keep these: {', '.join(before)}"
        )
    changed = {name: value for name, value in after.items() if value != before[name]}
    for name, value in changed.items():
        try:
            if name == QUESTION:
                changed[name] = checked_question(value)
            else:
                OUTPUT[name].validate_python(value)
        except (ValidationError, InputError) as exc:
            reason = str(exc).splitlines()
            raise NotResumableError(f"{name} cannot be used: {' '.join(reason[:3])}") from exc
    return changed


def human_input(request: ResumeRequest, turn: Turn, services: Services) -> HumanInput | None:
    """The grant or the answer for the call at which the turn stopped, if it needs one.

    Raises NotResumableError for an answer that is missing, and for a grant that nothing waits for
    or that the configuration forbids.
    """
    failure, grant = turn.failure, request.grant
    call = waiting_call(turn, request.edited)
    if grant is not None and grant not in SCOPES:
        raise NotResumableError(
            f"{grant!r} is no way to grant", hint=f"it is {', '.join(SCOPES[:-1])} or {SCOPES[-1]}"
        )
    if failure is not None and failure.error_type == ASKED and call is not None:
        how = f'unified-flow resume {turn.turn_id} --note "the answer"'
        if grant is not None:
            raise NotResumableError(
                f"turn {turn.turn_id} waits for an answer, so there is nothing to grant", hint=how
            )
        answer = request.answer or answer_in_note(services.queue, turn, failure.intervention_id)
        if answer is None and request.from_phase is not None:
            return None  # the turn may go another way; if not, it asks again
        if answer is None:
            raise NotResumableError(
                f"turn {turn.turn_id} waits for an answer to: {failure.error_message}", hint=how
            )
        return HumanInput(tool=call.tool, args=call.args, answer=answer)
    if grant is None:
        return None
    if failure is None or failure.error_type != DENIED or call is None:
        raise NotResumableError(
            f"no tool was refused when turn {turn.turn_id} stopped, so there is nothing to grant"
        )
    _must_be_grantable(services, turn, call)
    return HumanInput(tool=call.tool, args=call.args, grant=grant)


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


def answer_in_note(queue: InterventionQueue, turn: Turn, intervention_id: str | None) -> str | None:
    """The note with which somebody resolved the turn's own question. A dismissal is no answer, nor
    is the note of another failure with which the queue merged this one."""
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
    tool = next((tool for tool in services.toolbox if tool.name == request.tool), None)
    if tool is None:
        return  # of a server that is not connected yet: its call passes the gate like any other
    decision = services.gate.decide(tool, turn.session_id)
    if decision.verdict == "denied":
        raise NotResumableError(
            f"{request.tool} cannot be granted: {decision.why}",
            hint="mend tools.deny in unified_flow.toml",
        )
