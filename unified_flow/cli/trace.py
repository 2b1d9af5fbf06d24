"""`unified-flow trace`: from a request id to what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from interventions.cli.terminal import say
from interventions.entry import short_id
from interventions.errors import NotFoundError
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.terminal import say_object

if TYPE_CHECKING:
    from unified_flow.engine.telemetry.tracing import RequestTrace


def trace(
    request_id: Annotated[
        str,
        typer.Argument(
            help="As the client has it (X-Request-ID); `last` is that of the newest turn."
        ),
    ],
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """A request: its phases with their times, its error, and its intervention.

    \b
    unified-flow trace 2026-01-04-1f9c0a3e5b7d
    unified-flow trace 2026-01-04-1f9c0a3e5b7d --json
    """
    from unified_flow.engine.telemetry.tracing import trace as find
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive
    from unified_flow.turns.archive import LAST

    newest = wait_for(turn_archive(home).find(LAST)) if request_id == LAST else None
    found = find(home, newest.request_id if newest is not None else request_id)
    if not found:
        newest_ids = "the newest are in logs/rag_queries.jsonl"
        a_turn = f"for a turn by its number: unified-flow turns show {request_id} --timeline"
        hint = a_turn if request_id.isdecimal() else newest_ids
        raise NotFoundError(f"no request {request_id} is known", hint=hint)
    if as_json:
        requests = [each.model_dump(mode="json") for each in found]
        say_object({"requests": requests})
        return
    for number, each in enumerate(found):
        if number:
            say("")
        _show(each)


def _show(request: RequestTrace) -> None:
    say(f"request  {_clean(request.request_id)}  {_clean(request.timestamp)}")
    if http := request.http:
        took = f"{http.duration_ms:.1f} ms"
        say(f"http     {_clean(http.method)} {_clean(http.route)}  {http.status}  {took}")
    if request.turn_id:
        session = _clean(request.session_id)
        say(f"turn     {request.turn_id}, {_clean(request.status)}, session {session}")
    say(f"policy   {_clean(request.policy)}{', degraded' if request.degraded else ''}")
    for phase in request.phases:
        name = _clean(phase.name) + (f" {phase.visit}" if phase.visit > 1 else "")
        agent = phase.agent or ""
        say(f"  {name:<18} {phase.duration_ms:>10.1f} ms  {_clean(phase.status):<11} {agent}")
    if request.error:
        say(f"error    {_clean(request.code)} ({_clean(request.type)})")
    waiting = request.intervention
    if waiting is not None:
        tool = f", {_clean(waiting.tool)}" if waiting.tool else ""
        say(f"waiting  {_clean(waiting.id)}  {waiting.state}, {_clean(waiting.severity)}")
        say(f"  {_clean(waiting.phase)}{tool}: {_clean(waiting.error_type)}")
        say(f"  {_clean(waiting.error_message)}")
        if waiting.resolution:
            say(f"  resolved: {_clean(waiting.resolution)}")
        say(f"  interventions show {short_id(waiting.id)}")
    elif request.error and request.intervention_id:
        say(f"waiting  {_clean(request.intervention_id)} is in no queue and no archive any more")


def _clean(value: object) -> str:
    return one_line(str(value)) if value is not None else "-"
