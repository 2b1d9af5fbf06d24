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
    return commands
