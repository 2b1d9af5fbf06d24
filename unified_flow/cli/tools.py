"""`unified-flow tools`: which tools there are, what each may do, and calling one by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from typer import Argument

from interventions.cli.terminal import Code, note, say
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.plaintext import one_line
from interventions.secrets.redaction import redact, redact_for_asker, redact_text
from unified_flow.cli import options
from unified_flow.cli.sessions import session_named
from unified_flow.cli.terminal import beginning, counted, say_list, say_object, say_result
from unified_flow.config.tool_names import MEMORY_CREATE

if TYPE_CHECKING:
    from pathlib import Path

    from unified_flow.engine.services import Services
    from unified_flow.tools import Tool, ToolOutput
    from unified_flow.tools.grants import GrantStore

BY_HAND = "by hand"
ToolName = Annotated[str, Argument(help="The tool's whole name.")]


def list_tools(
    session: options.Session = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
    **chosen: Unpack[options.ToolOptions],
) -> None:
    """Every tool: what it does, whether it may run, its source.

    \b
    unified-flow tools list
    unified-flow tools list --tools mytools.py --json

    Exit code 0, or 1 if an MCP server does not answer or has several tools of one name;
    the others are shown all the same.
    """
    import asyncio

    from unified_flow.wiring import wire

    services = wire(home, **chosen)
    rows, broken = asyncio.run(_listed(services, session_named(session, home) or ""))
    if as_json:
        say_object({"tools": rows, "errors": broken})
    else:
        for row in rows:
            _show(row)
    for problem in broken:
        note(f"error: {one_line(problem)}")
    if broken:
        raise typer.Exit(Code.FAILED)


def run_tool(
    name: ToolName,
    pairs: Annotated[
        list[str] | None,
        Argument(metavar="[KEY=VALUE]...", help="Its arguments; what is no text is JSON."),
    ] = None,
    session: options.Session = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
    **chosen: Unpack[options.ToolOptions],
) -> None:
    """Run one tool, through the same checks as in a turn.

    \b
    unified-flow tools run calculate expression="17 * 3"
    unified-flow tools run time.get_current_time timezone=Europe/Oslo
    unified-flow tools run file.read path=docs/a.md end_line=5

    Exit codes: 0 done, 1 refused or failed, 2 no such tool or wrong arguments.
    """
    import asyncio

    from unified_flow.cli.permission_question import terminal_asker
    from unified_flow.wiring import wire

    services = wire(home, **chosen, asker=None if as_json else terminal_asker())
    if services.documents is not None:
        services.documents.ensure_fresh()
    output = asyncio.run(_called(services, name, pairs or [], session_named(session, home) or ""))
    claims = [claim.model_dump(mode="json") for claim in output.claims]
    if as_json:
        say_object({"tool": name, "result": redact(output.result), "claims": redact(claims)})
    elif isinstance(output.result, str):
        say(redact_for_asker(output.result))
    else:
        say(json.dumps(redact(output.result), ensure_ascii=False, indent=2))


def list_grants(as_json: options.AsJson = False, home: options.Home = None) -> None:
    """What people have allowed tools to do, for always or for a session.

    \b
    unified-flow grants list --json
    """
    rows = [grant.model_dump(mode="json") for grant in _store(home).all()]
    lines = []
    for row in rows:
        scope = f"session {row['session_id']}" if row["session_id"] else "always"
        hosts = f"  for {', '.join(row['hosts'])}" if row["hosts"] else ""
        lines.append(f"{row['tool']}  {scope}{hosts}  by {row['by']}, {row['at'][:10]}")
    nothing = "nothing was allowed on a terminal or by a resolution"
    say_list(as_json, {"grants": rows}, lines, nothing)


def delete_grants(
    name: ToolName,
    session: options.Session = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Take back what a tool was allowed.

    The setting tools.allow does not change.

    \b
    unified-flow grants delete time.get_current_time
    """
    gone = _store(home).revoke(name, session_id=session_named(session, home))
    if not gone:
        raise NotFoundError(f"nothing was allowed to {name}", hint="unified-flow grants list")
    say_result(as_json, {"tool": name, "deleted": gone}, f"deleted {counted(gone, 'grant')}")


def _store(home: Path | None) -> GrantStore:
    from unified_flow.stores import grant_store

    return grant_store(find_home(home))


async def _listed(services: Services, session: str) -> tuple[list[dict[str, Any]], list[str]]:
    from unified_flow.errors import ConfigError, ToolError

    broken = []
    try:
        for server in services.toolbox.servers:
            try:
                await services.toolbox.open(f"{server}.")
            except (ConfigError, ToolError) as exc:
                broken.append(redact_text(str(exc)))
        doubled = services.toolbox.ambiguous
        broken += [f"several tools are named {name}: none of them is used" for name in doubled]
        return [_row(services, tool, session) for tool in services.toolbox], broken
    finally:
        await services.aclose()


def _row(services: Services, tool: Tool, session: str) -> dict[str, Any]:
    decision = services.gate.decide(tool, session)
    asked_for = tool.name == MEMORY_CREATE and decision.verdict == "ask"
    return {
        "name": tool.name,
        "description": tool.description,
        "access": sorted(tool.access),
        "allowed": decision.verdict == "allowed",
        "why": decision.why + ('; "Remember that …" allows it' if asked_for else ""),
        "source": tool.source,
        "parameters": tool.arguments.model_json_schema(),
    }


def _show(row: dict[str, Any]) -> None:
    mark = "✓" if row["allowed"] else "✗"
    takes = ", ".join(row["parameters"].get("properties", {}))
    say(f"{mark} {row['name']}({takes})  {row['source']}")
    say(f"    {beginning(row['description'], 100)}")
    if not row["allowed"] or row["access"] not in ([], ["reads"]):
        say(f"    {'may run' if row['allowed'] else 'may not run'}: {row['why']}")


async def _called(services: Services, name: str, pairs: list[str], session: str) -> ToolOutput:
    from unified_flow.errors import InputError, ToolDeniedError, ToolError, UnifiedFlowError
    from unified_flow.lib.text.urls import addresses_of, without_fragment
    from unified_flow.tools import Caller
    from unified_flow.tools.toolbox import arguments_from_pairs
    from unified_flow.turns.results import ToolRequest

    try:
        await services.toolbox.open(name)
        found = (tool for tool in services.toolbox if tool.name == name)
        schema = next((tool.arguments.model_json_schema() for tool in found), {})
        try:
            args = arguments_from_pairs(pairs, schema)
        except ValueError as exc:
            raise InputError(f"the arguments of {name}: {exc}", field="args") from exc
        tool, checked = services.toolbox.check(ToolRequest(tool=name, args=args))
        urls = frozenset(map(without_fragment, addresses_of(args)))  # which a person has typed
        permission = await services.gate.admit(tool, args, session_id=session, urls=urls)
        if permission.verdict == "denied":
            raise ToolDeniedError(f"{name} did not run: {permission.why}")
        try:
            caller = Caller(session_id=session or BY_HAND, urls=urls)
            return await services.toolbox.call(tool, checked, caller)
        except (UnifiedFlowError, OSError):
            raise
        except Exception as exc:  # somebody's own function may raise anything
            raise ToolError(f"{name} failed: {type(exc).__name__}: {exc}") from exc
    finally:
        await services.aclose()
