"""`monitor`, and `python -m monitor`."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from interventions.errors import QueueError, how_to_install

if TYPE_CHECKING:
    from monitor.app import Monitor


# They can only write lines: they have no cursor to move, and Textual asks them for ever.
_PLAIN_TERMINALS = ("dumb", "unknown")


def main(arguments: Sequence[str] | None = None) -> None:
    commands = _parser()
    options = commands.parse_args(arguments)
    if options.port is not None and not options.web:
        commands.error("--port is for --web")
    if options.version:
        from importlib.metadata import version

        print(f"monitor {version('unified-flow')}")
        return
    if options.web:
        _serve(options)
        return
    if not options.once and not _is_terminal():
        _fail("monitor needs a terminal; without one: interventions list, or monitor --once")
    try:
        app = _application(options)
    except QueueError as error:
        _fail(f"{error} ({error.hint})" if error.hint else str(error))
    if options.once:
        from monitor.app import first_screen

        print(first_screen(app), end="")
    else:
        _run(app)
    raise SystemExit(app.return_code or 0)


def _parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(
        prog="monitor", description="Triage the intervention queue. Inside, ? shows the keys."
    )
    place = commands.add_mutually_exclusive_group()
    face = commands.add_mutually_exclusive_group()
    commands.add_argument("-V", "--version", action="store_true", help="print the version")
    place.add_argument(
        "--home",
        type=Path,
        help="folder that holds shared_state/ and logs/ [default: the nearest one upwards]",
    )
    place.add_argument(
        "--from",
        type=Path,
        metavar="FILE",
        dest="bundle",
        help="look at an exported intervention (interventions export), read-only",
    )
    face.add_argument("--once", action="store_true", help="print the first screen as text and end")
    face.add_argument(
        "--web", action="store_true", help="serve it to a browser on this machine (extra: web)"
    )
    commands.add_argument(
        "--id", default="", help="begin at this intervention, as ?id= of the page does"
    )
    commands.add_argument(
        "--port", type=_port, metavar="PORT", help="port for --web [default: a free one]"
    )
    return commands


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is no port (0 to 65535)")
    return number


def _application(options: argparse.Namespace) -> Monitor:
    """Raises QueueError when the settings or the file cannot be used."""
    gc.disable()  # a tenth of the time to the first paint, after which Monitor enables it
    from interventions.queue import queue_at
    from interventions.settings import MonitorSettings, settings_of
    from interventions.times import utc_now
    from interventions.transitions import Actor
    from monitor.app import Monitor
    from monitor.core.looked import look_file
    from monitor.core.source import BundleSource, LiveSource, Source

    source: Source
    if options.bundle is not None:
        source = BundleSource(options.bundle, utc_now)
    else:
        source = LiveSource(queue_at(options.home))
    looks = source.queue is not None and not options.once
    look = look_file(source.home, Actor.current().name) if looks else None
    settings = settings_of(source.home, MonitorSettings)
    return Monitor(source, source.read(), look=look, settings=settings, begin_at=options.id)


def _run(app: Monitor) -> None:
    # Not asyncio's own way: Textual swallows the cancellation that it makes of Ctrl-C at its end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: _end(app, 128 + number))
    app.run()


def _end(app: Monitor, code: int) -> None:
    """The terminal is given back first."""
    if app.return_code is None:
        app.exit(return_code=code)
        return
    # After the end: a thread that waits for a model can only be stopped with the process.
    sys.stderr.flush()
    os._exit(code)


def _serve(options: argparse.Namespace) -> None:
    arguments = ["--home", str(options.home)] if options.home else []
    arguments += ["--from", str(options.bundle)] if options.bundle else []
    try:
        from monitor.web import serve
    except ImportError as error:
        _fail(f"--web needs the extra web ({error}): {how_to_install('web')}")
    try:
        serve(arguments, options.port or 0)
    except OSError as error:
        _fail(f"cannot listen on port {options.port}: {error.strerror}")


def _is_terminal() -> bool:
    """A textual-serve session is none, but it draws in a browser."""
    served = os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")
    if os.environ.get("TERM") in _PLAIN_TERMINALS:
        return served
    # Textual draws on stderr.
    return served or all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


def _fail(why: str) -> NoReturn:
    print(f"error: {why}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
