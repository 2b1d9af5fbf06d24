"""The command line of `monitor`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Ends the program with 2 when they contradict each other."""
    commands = _parser()
    options = commands.parse_args(arguments)
    if options.port is not None and not options.web:
        commands.error("--port is for --web")
    return options


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is no port (0 to 65535)")
    return number


def _parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(
        prog="monitor",
        description="Triage the intervention queue. Inside, ? shows the keys.",
    )
    commands.add_argument("--version", action="store_true", help="print the version")
    place = commands.add_mutually_exclusive_group()
    face = commands.add_mutually_exclusive_group()
    place.add_argument(
        "--home",
        type=Path,
        help="folder that holds shared_state/ and logs/ [default: the nearest one upwards]",
    )
    face.add_argument("--once", action="store_true", help="print the first screen as text and end")
    face.add_argument(
        "--picture", type=Path, metavar="FILE", help="write the first screen as SVG and end"
    )
    place.add_argument(
        "--from",
        type=Path,
        metavar="FILE",
        dest="bundle",
        help="look at an exported intervention (interventions export), read-only",
    )
    face.add_argument(
        "--web", action="store_true", help="serve it to a browser on this machine (extra: web)"
    )
    commands.add_argument(
        "--port", type=_port, metavar="PORT", help="port for --web [default: a free one]"
    )
    return commands
