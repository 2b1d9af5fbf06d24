"""`unified-flow mcp`: the flow and the queue for coding agents."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from unified_flow.cli import options


def mcp(
    allow_write: Annotated[
        bool,
        typer.Option("--allow-write", help="Let agents resolve interventions and resume turns."),
    ] = False,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Serve coding agents over MCP, on standard input and output.

    An agent can ask, search, and read interventions and turns; tools of a turn run as your
    settings allow. With --allow-write it can also resolve what it has mended: the turn goes on, and
    only if that works is the intervention closed.

    \b
    unified-flow mcp --docs docs/
    unified-flow mcp --docs docs/ --allow-write --home ~/project

    It needs: pip install 'unified-flow[mcp]'
    """
    from unified_flow.cli.recovery import note_dead_turns
    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.errors.extras import needs_extra
    from unified_flow.flow import UnifiedFlow

    with needs_extra("serving agents", "mcp"):
        from unified_flow.mcp_service import serve
    flow = UnifiedFlow.from_config(home, **chosen)
    note_dead_turns(flow.services)
    with logged(flow.services.home):
        serve(flow, allow_write=allow_write)
