"""`unified-flow serve`, `mcp` and `model serve`: the flow over HTTP and for coding agents, and a
local model kept loaded."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from typer import Argument, Option

from interventions.cli.terminal import Code, note
from interventions.home import find_home, state_folder
from unified_flow.cli import options

if TYPE_CHECKING:
    from unified_flow.servers.llama_server import Address


def serve(
    host: Annotated[
        str | None, Option(help="Address to listen on [default: 127.0.0.1]; another needs a token.")
    ] = None,
    port: Annotated[
        int | None, Option(min=0, max=65535, help="[default: 8000]; 0 takes any free one.")
    ] = None,
    policy: Annotated[
        str | None, Option(help="What a failure does: fail_fast, or graceful for end users.")
    ] = None,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Answer over HTTP: POST /query, and /v1 for OpenAI clients.

    \b
    unified-flow serve --docs docs/
    unified-flow serve --docs docs/ --policy graceful --port 8080
    RAG_CLIENT_TOKEN=… unified-flow serve --host 0.0.0.0

    Settings: the table [serve]. Tokens come from the variables RAG_CLIENT_TOKEN and
    RAG_TRIAGE_TOKEN, or from files. It needs the extra `serve`.
    """
    from unified_flow.cli.recovery import note_dead_turns
    from unified_flow.errors import needs_extra
    from unified_flow.wiring import wire

    with needs_extra("serving", "serve"):
        from unified_flow.api.server import serve as run
    given = {"host": host, "port": port}
    services = wire(
        home,
        **chosen,
        policy=policy,
        serve={key: value for key, value in given.items() if value is not None} or None,
    )
    note_dead_turns(services)
    run(services)


def mcp(
    allow_write: Annotated[
        bool, Option("--allow-write", help="Let agents resolve interventions and resume turns.")
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

    It needs the extra `mcp`.
    """
    from unified_flow.cli.recovery import note_dead_turns
    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.errors import needs_extra
    from unified_flow.flow import UnifiedFlow

    with needs_extra("serving agents", "mcp"):
        from unified_flow.mcp_service import serve
    flow = UnifiedFlow.from_config(home, **chosen)
    note_dead_turns(flow.services)
    with logged(flow.services.home):
        serve(flow, allow_write=allow_write)


def serve_model(
    path: Annotated[
        Path | None, Argument(help="The .gguf file [default: path under [local]].")
    ] = None,
    home: options.Home = None,
) -> None:
    """Keep a model loaded for all other commands.

    Ctrl-C ends it.

    It listens on loopback, with a key that only commands of the same home and user can read.

    \b
    unified-flow model serve qwen2.5-1.5b-instruct-q4_k_m.gguf
    unified-flow ask "…" --model local:qwen2.5-1.5b-instruct-q4_k_m.gguf --docs docs/
    """
    from unified_flow.config.paths import LOCAL_PREFIX
    from unified_flow.config.settings import LOCAL, load
    from unified_flow.servers.llama_server import LocalServer, serving

    place = find_home(home)
    settings = load(place)
    named = settings.local_path(f"{LOCAL_PREFIX}{path}" if path else LOCAL)
    assert named is not None
    server = LocalServer(
        named,
        context_tokens=settings.local.context_tokens,
        start_timeout_s=settings.local.start_timeout_s,
    )
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))

    def start() -> Address:
        note(f"loading {named} …")
        return server.start()

    try:
        with serving(state_folder(place), named, start) as address:
            note(f"served at {address.url} for {place}; Ctrl-C ends it")
            ended = server.died(None)
    finally:
        server.stop()
    note(f"error: the model's process ended: {ended}")
    raise typer.Exit(Code.FAILED)
