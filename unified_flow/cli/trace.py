"""`unified-flow trace`: from a request id to what happened, by query log, turn and intervention."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from interventions.cli.terminal import say
from interventions.entry import short_id
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.terminal import say_object

if TYPE_CHECKING:
    from pathlib import Path

    from interventions import InterventionQueue
    from interventions.entry import Entry
    from unified_flow.engine.telemetry.query_log import RequestLine

# What is shown of an intervention, as it stands now.
SHOWN = (
    *("id", "state", "severity", "phase", "tool", "error_type", "error_category"),
    *("error_message", "resolution"),
)


def trace(
    request_id: Annotated[
        str,
        Argument(help="As the client has it (X-Request-ID); `last` is that of the newest turn."),
    ],
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """A request: its phases, their times, its error.

    \b
    unified-flow trace 2026-01-04-1f9c0a3e5b7d
    unified-flow trace 2026-01-04-1f9c0a3e5b7d --json
    """
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive
    from unified_flow.turns.archive import LAST

    newest = wait_for(turn_archive(home).find(LAST)) if request_id == LAST else None
    found = requests_of(home, newest.request_id if newest is not None else request_id)
    if not found:
        newest_ids = "the newest are in logs/rag_queries.jsonl"
        a_turn = f"for a turn by its number: unified-flow turns show {request_id} --timeline"
        hint = a_turn if request_id.isdecimal() else newest_ids
        raise NotFoundError(f"no request {request_id} is known", hint=hint)
    if as_json:
        say_object({"requests": found})
        return
    for number, each in enumerate(found):
        if number:
            say("")
        _show(each)


def requests_of(home: Path | str | None, request_id: str) -> list[dict[str, Any]]:
    """Every request of that id, oldest first: its line, with the agent of data-model.md that each
    phase stands for, and the intervention as it stands now; null where it is gone.

    A client may use an id again, so there may be several; [] for an unknown one. Raises OSError
    for a log that cannot be read, RetrievalError for a damaged journal, QueueError.
    """
    from interventions.queue import queue_at
    from unified_flow.engine.telemetry.query_log import QueryLog, RequestLine
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_archive

    root = find_home(home)
    found = list(QueryLog.of(root).of_request(request_id))
    if not found and not request_id.isdecimal():
        # Killed before its line was written, or the log has been cleared: the journal knows.
        turn = wait_for(turn_archive(root).find(request_id))
        found = [RequestLine.of_turn(turn)] if turn is not None else []
    return [_traced(line, queue_at(root)) for line in found]


def _traced(line: RequestLine, queue: InterventionQueue) -> dict[str, Any]:
    from interventions.secrets.redaction import redact_text
    from interventions.times import utc_now
    from interventions.view.groups import entry_view
    from unified_flow.turns.wire.agents import PHASES_OF

    agents = {phase: str(agent) for agent, phases in PHASES_OF.items() for phase in phases}
    said = line.model_dump(mode="json")
    for phase in said["phases"]:
        phase["agent"] = agents.get(phase["name"])
    waiting = None
    if (entry := _entry(line, queue)) is not None:
        view = entry_view(entry, utc_now())
        message = redact_text(entry["error_message"])
        waiting = {name: view.get(name) for name in SHOWN} | {"error_message": message}
    return said | {"intervention": waiting}


def _entry(line: RequestLine, queue: InterventionQueue) -> Entry | None:
    """Of a line that was written before the queue had answered, or of a turn that another model has
    saved, that of its turn."""
    if line.intervention_id:
        with suppress(NotFoundError):
            return queue.find(line.intervention_id)
    elif line.turn_id and (line.error or line.degraded):
        return next((each for each in queue.entries() if each["turn_id"] == line.turn_id), None)
    return None


def _show(request: Mapping[str, Any]) -> None:
    shown = {name: _clean(value) for name, value in request.items()}
    say(f"request  {shown['request_id']}  {shown['timestamp']}")
    if http := request["http"]:
        took = f"{http['duration_ms']:.1f} ms"
        say(f"http     {_clean(http['method'])} {_clean(http['route'])}  {http['status']}  {took}")
    if request["turn_id"]:
        say(f"turn     {shown['turn_id']}, {shown['status']}, session {shown['session_id']}")
    say(f"policy   {shown['policy']}{', degraded' if request['degraded'] else ''}")
    for phase in request["phases"]:
        name = _clean(phase["name"]) + (f" {phase['visit']}" if phase["visit"] > 1 else "")
        took = f"{phase['duration_ms']:>10.1f} ms  {_clean(phase['status']):<11}"
        say(f"  {name:<18} {took} {phase['agent'] or ''}")
    if request["error"]:
        say(f"error    {shown['code']} ({shown['type']})")
    waiting = request["intervention"]
    if waiting is not None:
        shown = {name: _clean(value) for name, value in waiting.items()}
        tool = f", {shown['tool']}" if waiting["tool"] else ""
        say(f"waiting  {shown['id']}  {shown['state']}, {shown['severity']}")
        say(f"  {shown['phase']}{tool}: {shown['error_type']}")
        say(f"  {shown['error_message']}")
        if waiting["resolution"]:
            say(f"  resolved: {shown['resolution']}")
        say(f"  interventions show {short_id(waiting['id'])}")
    elif request["error"] and request["intervention_id"]:
        say(f"waiting  {shown['intervention_id']} is in no queue and no archive any more")


def _clean(value: object) -> str:
    return one_line(str(value)) if value is not None else "-"
