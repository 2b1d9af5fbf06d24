"""`interventions`, and `python -m interventions`."""

from __future__ import annotations


def main() -> None:
    from interventions.cli.main import app

    app(prog_name="interventions")


if __name__ == "__main__":
    main()
