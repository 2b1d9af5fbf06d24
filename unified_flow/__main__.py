"""The command `unified-flow`. What it needs is loaded when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from unified_flow import __version__

        print(f"unified-flow {__version__}")
        return
    from unified_flow.cli.app import app

    try:
        app(prog_name="unified-flow")
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as exc:  # noqa: BLE001 - a mistake of ours, or what somebody's own code raised
        _tell(exc)
        sys.exit(1)


def _tell(exc: BaseException) -> None:
    """The traceback for a report of the mistake, without the secrets that a message may hold."""
    import traceback

    from interventions.plaintext import one_line
    from interventions.secrets.redaction import redact_text

    lines = redact_text("".join(traceback.format_exception(exc))).rstrip().splitlines()
    for line in lines:
        print(line[: len(line) - len(line.lstrip())] + one_line(line.lstrip()), file=sys.stderr)


if __name__ == "__main__":
    main()
