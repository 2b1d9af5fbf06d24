"""`unified-flow serve`: the flow over HTTP."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from unified_flow.cli import options
from unified_flow.cli.completing import policies


def serve(
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on [default: 127.0.0.1]; another needs a token."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="[default: 8000]; 0 takes any free one.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="What a failure does: fail_fast, or graceful for end users.",
            autocompletion=policies,
        ),
    ] = None,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Answer questions over HTTP: POST /query, and /v1 for any OpenAI client.

    \b
    unified-flow serve --docs docs/
    unified-flow serve --docs docs/ --policy graceful --port 8080
    RAG_CLIENT_TOKEN=… unified-flow serve --host 0.0.0.0

    Settings: the table [serve]. Tokens come from the variables RAG_CLIENT_TOKEN and
    RAG_TRIAGE_TOKEN, or from files. It needs: pip install 'unified-flow[serve]'
    """
    from unified_flow.errors import ConfigError
    from unified_flow.wiring import wire

    try:
        from unified_flow.api.server import serve as run
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"serving needs {exc.name}, which is not installed",
            hint="pip install 'unified-flow[serve]'",
        ) from exc
    given = {"host": host, "port": port}
    run(
        wire(
            home,
            **chosen,
            policy=policy,
            serve={key: value for key, value in given.items() if value is not None} or None,
        )
    )
