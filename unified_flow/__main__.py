"""The command `unified-flow`. What it needs is loaded when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from unified_flow import __version__

        print(f"unified-flow {__version__}")
        return
    from unified_flow.cli.app import app

    app(prog_name="unified-flow")


if __name__ == "__main__":
    main()
