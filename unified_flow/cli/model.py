"""`unified-flow model add`: the file of a model, fetched and checked."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from interventions.cli.terminal import say
from interventions.home import find_home
from unified_flow.cli import options
from unified_flow.cli.terminal import progress_bar, say_object


def add_model(
    url: Annotated[str, Argument(help="The file's https address.", metavar="URL")],
    sha256: Annotated[
        str,
        Option(
            "--sha256",
            metavar="SUM",
            help="The SHA-256 that its publisher names; another file is refused.",
        ),
    ],
    into: Annotated[
        Path | None, Option(metavar="FOLDER", help="Where it goes [default: models/ of the home].")
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Fetch a model's file and check it. Interrupted, the same command goes on where it stopped.

    \b
    unified-flow model add https://HOST/PATH/model.gguf --sha256 SUM
    unified-flow ask "…" --model local:models/model.gguf --docs docs/

    For search by meaning write model = "models/embedding.gguf" under [vectors] in the settings.

    A file that is there and right is left as it is. On a model hub the sum stands on the page of
    the file. Proxies of the environment are used; no key is ever sent.

    Exit codes: 0 it is there and right, 1 it could not be had or its sum differs (it is removed),
    2 usage, or another file of that name is there, 130 interrupted.
    """
    from unified_flow.servers.download import fetch_model

    with progress_bar("fetching", show=sys.stderr.isatty(), in_bytes=True) as progress:
        found = fetch_model(url, sha256, into or find_home(home) / "models", progress)
    if as_json:
        say_object(asdict(found) | {"path": str(found.path)})
    elif found.fetched:
        say(f"{found.path}: {found.bytes:,} bytes, SHA-256 as named")
    else:
        say(f"{found.path} is there, and right")
