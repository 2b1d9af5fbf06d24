"""`unified-flow trace`: from the id that a client was given to what happened."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from interventions.cli.exits import Code
from interventions.cli.screen import note, say
from interventions.entry import short_id
from interventions.view.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.exits import exits


def trace(
    request_id: Annotated[str, typer.Argument(help="As the client has it: X-Request-ID.")],
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """A request: its phases with their times, its error, and its intervention.

    \b
    unified-flow trace 2026-01-04-1f9c0a3e5b7d
    unified-flow trace 2026-01-04-1f9c0a3e5b7d --json
    """
    with exits():
        from unified_flow.telemetry.tracing import trace as find

        found = find(home, request_id)
        if not found:
            note(f"error: no request {one_line(request_id)} is known")
            note("  hint: the newest are in logs/rag_queries.jsonl")
            raise typer.Exit(Code.NOT_FOUND)
        if as_json:
            say(json.dumps({"requests": found}, ensure_ascii=False))
            return
        for number, each in enumerate(found):
            if number:
                say("")
            _show(each)


def _show(request: dict[str, Any]) -> None:
    say(f"request  {_clean(request['request_id'])}  {_clean(request.get('timestamp'))}")
    if http := request.get("http"):
        took = f"{http['duration_ms']:.1f} ms"
        say(f"http     {http['method']} {_clean(http['route'])}  {http['status']}  {took}")
    if request.get("turn_id"):
        session = _clean(request.get("session_id"))
        say(f"turn     {request['turn_id']}, {request['status']}, session {session}")
    say(
        f"policy   {_clean(request.get('policy'))}{', degraded' if request.get('degraded') else ''}"
    )
    for phase in request["phases"]:
        name = phase["name"] + (f" {phase['visit']}" if phase["visit"] > 1 else "")
        agent = phase["agent"] or ""
        say(f"  {name:<18} {phase['duration_ms']:>10.1f} ms  {phase['status']:<11} {agent}")
    if request.get("error"):
        say(f"error    {_clean(request.get('code'))} ({_clean(request.get('type'))})")
    told = request["intervention"]
    if told is not None:
        tool = f", {_clean(told['tool'])}" if told["tool"] else ""
        say(f"waiting  {told['id']}  {told['state']}, {told['severity']}")
        say(f"  {_clean(told['phase'])}{tool}: {_clean(told['error_type'])}")
        say(f"  {_clean(told['error_message'])}")
        if told["resolution"]:
            say(f"  resolved: {_clean(told['resolution'])}")
        say(f"  interventions show {short_id(told['id'])}")
    elif request.get("error") and request.get("intervention_id"):
        say(f"waiting  {request['intervention_id']} is in no queue and no archive any more")


def _clean(value: object) -> str:
    return one_line(str(value)) if value is not None else "-"
