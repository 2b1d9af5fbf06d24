"""`monitor`, and `python -m monitor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interventions.errors import QueueError
from monitor.arguments import parser

if TYPE_CHECKING:
    from argparse import Namespace

    from monitor.app import Monitor


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    if options.version:
        from importlib.metadata import version

        print(f"monitor {version('unified-flow')}")
        return
    if not options.once and not _is_terminal():
        _end("monitor needs a terminal; without one: interventions list, or monitor --once")
    try:
        app = _application(options)
    except QueueError as error:
        _end(f"{error} ({error.hint})" if error.hint else str(error))
    if options.once:
        from monitor.once import first_screen

        print(first_screen(app))
        return
    app.run()


def _application(options: Namespace) -> Monitor:
    """Raises QueueError when the settings or the file cannot be used."""
    from interventions.settings import queue_at
    from monitor.app import Monitor
    from monitor.source import LiveSource

    source = LiveSource(queue_at(options.home))
    return Monitor(source, source.read())


def _is_terminal() -> bool:
    """A textual-serve session is none, but it draws in a browser."""
    served = os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")
    # Textual draws on stderr.
    return served or all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


def _end(why: str) -> None:
    print(f"error: {why}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
