"""`interventions`, and `python -m interventions`."""

from __future__ import annotations

import gc


def main() -> None:
    # What is imported stays until the end: looking through it for garbage is a tenth of a command.
    gc.disable()
    from interventions.cli import app

    gc.freeze()
    gc.enable()
    app(prog_name="interventions")


if __name__ == "__main__":
    main()
