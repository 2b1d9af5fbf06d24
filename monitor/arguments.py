"""The command line of `monitor`."""

from __future__ import annotations

import argparse
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(
        prog="monitor",
        description="Triage the intervention queue. Inside, ? shows the keys.",
    )
    commands.add_argument("--version", action="store_true", help="print the version")
    commands.add_argument(
        "--home",
        type=Path,
        help="folder that holds shared_state/ and logs/ [default: the nearest one upwards]",
    )
    commands.add_argument(
        "--once", action="store_true", help="print the first screen as text and end"
    )
    commands.add_argument(
        "--picture", type=Path, metavar="FILE", help="write the first screen as SVG and end"
    )
    commands.add_argument(
        "--from",
        type=Path,
        metavar="FILE",
        dest="bundle",
        help="look at an exported intervention (interventions export), read-only",
    )
    commands.add_argument(
        "--web", action="store_true", help="serve it to a browser on this machine (extra: web)"
    )
    commands.add_argument(
        "--port", type=int, default=0, help="port for --web [default: a free one]"
    )
    return commands
