"""`interventions`, and `python -m interventions`."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from importlib.metadata import version

        print(f"interventions {version('unified-flow')}")
        return
    from interventions.cli.main import app

    app(prog_name="interventions")


if __name__ == "__main__":
    main()
