"""`unified-flow model`: the local model, kept warm for many commands."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interventions.cli.terminal import Code, note
from unified_flow.cli import options

if TYPE_CHECKING:
    from types import FrameType

    from unified_flow.servers.llama_server import Address


def serve(
    path: Annotated[
        Path | None,
        typer.Argument(help="The .gguf file [default: path under [local]].", show_default=False),
    ] = None,
    home: options.Home = None,
) -> None:
    """Keep a model loaded, so that no other command has to load it; Ctrl-C ends it.

    It listens on loopback, with a key that only commands of the same home and user can read.

    \b
    unified-flow model serve qwen2.5-1.5b-instruct-q4_k_m.gguf
    unified-flow ask "…" --model local:qwen2.5-1.5b-instruct-q4_k_m.gguf --docs docs/
    """
    from interventions.home import find_home, state_folder
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
    signal.signal(signal.SIGTERM, _end)

    def start() -> Address:
        note(f"loading {named} …")
        return server.start()

    try:
        with serving(state_folder(place), named, start) as address:
            note(f"served at {address.url} for {place}; Ctrl-C ends it")
            ended = server.wait()
    finally:
        server.stop()
    note(f"error: the model's process ended: {ended}")
    raise typer.Exit(Code.FAILED)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
