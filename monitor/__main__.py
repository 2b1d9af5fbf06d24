"""`monitor`, and `python -m monitor`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from interventions.errors import QueueError
from monitor.core.arguments import parse

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from monitor.app import Monitor


# What these can do is write a line: no cursor goes anywhere, and Textual asks them for ever.
_NONE = ("dumb", "unknown")


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.version:
        from importlib.metadata import version

        print(f"monitor {version('unified-flow')}")
        return
    if options.web:
        _serve(options)
        return
    if not (options.once or options.picture) and not _is_terminal():
        _end("monitor needs a terminal; without one: interventions list, or monitor --once")
    try:
        app = _application(options)
    except QueueError as error:
        _end(f"{error} ({error.hint})" if error.hint else str(error))
    if options.once or options.picture:
        _first_screen(app, options.picture)
    else:
        _run(app)
    raise SystemExit(app.return_code or 0)


def _run(app: Monitor) -> None:
    # Not asyncio's own way: Textual swallows the cancellation that it makes of Ctrl-C at its end.
    signal.signal(signal.SIGINT, lambda number, frame: _interrupted(app))
    app.run()


def _interrupted(app: Monitor) -> None:
    if not app.left:
        app.exit(return_code=130)
        return
    # After the end: a thread that waits for a model can only be stopped with the process.
    sys.stderr.flush()
    os._exit(130)


def _first_screen(app: Monitor, picture: Path | None) -> None:
    """On stdout, or as a picture into the file. What went wrong is told by the application."""
    from monitor.once import first_screen, screen_svg, screen_text

    shown = first_screen(app, screen_text if picture is None else screen_svg)
    if shown is None:
        return
    if picture is None:
        print(shown)
        return
    try:
        picture.write_text(shown, encoding="utf-8")
    except OSError as error:
        _end(f"cannot write {picture}: {error.strerror}")


def _application(options: Namespace) -> Monitor:
    """Raises QueueError when the settings or the file cannot be used."""
    from interventions.settings import queue_at
    from interventions.timestamps import utc_now
    from monitor.app import Monitor
    from monitor.core.bundle import BundleSource
    from monitor.core.source import LiveSource, Source

    source: Source
    if options.bundle is not None:
        source = BundleSource(options.bundle, utc_now)
    else:
        source = LiveSource(queue_at(options.home))
    return Monitor(source, source.read())


def _serve(options: Namespace) -> None:
    arguments = ["--home", str(options.home)] if options.home else []
    arguments += ["--from", str(options.bundle)] if options.bundle else []
    try:
        from monitor.web.server import serve
    except ImportError as error:
        _end(f"--web needs the extra web ({error}): pip install 'unified-flow[web]'")
    try:
        serve(arguments, options.port or 0)
    except OSError as error:
        _end(f"cannot listen on port {options.port}: {error.strerror}")


def _is_terminal() -> bool:
    """A textual-serve session is none, but it draws in a browser."""
    served = os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")
    if os.environ.get("TERM") in _NONE:
        return served
    # Textual draws on stderr.
    return served or all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


def _end(why: str) -> NoReturn:
    print(f"error: {why}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
