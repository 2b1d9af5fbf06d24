"""`logs/flow.log`: what the flow says to whoever runs it, where a program wants it in a file.

Warnings and worse of everything here, and every line of the guardrails; redacted, one line each.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from interventions.home import open_private
from interventions.plaintext import one_line
from interventions.redaction import redact_text
from unified_flow.events import now, stamp

GUARDRAILS = "unified_flow.guardrails"


def log_to(path: Path) -> None:
    """For a program's own process; a library must leave logging to whoever uses it."""
    handler = _PrivateFile(path)
    for name in ("unified_flow", "interventions"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger(GUARDRAILS).setLevel(logging.INFO)


class _PrivateFile(logging.Handler):
    """Opened for each line, of which there are few, so that the file may be moved at any time."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.name == GUARDRAILS

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = one_line(redact_text(self.format(record)))
            line = f"{stamp(now())} {record.levelname} {record.name} {said}\n"
            data = line.encode("utf-8", "replace")
        except Exception:  # noqa: BLE001 - logging must not fail what is logged
            self.handleError(record)
            return
        try:
            # One write, so that lines of several processes do not mix.
            descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:
            sys.stderr.write(line)  # a full disk is just what has to be heard of
