"""The command that reads scanned pages: `[documents] ocr`."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from contextlib import suppress

from unified_flow.lib.sandbox import UnusableError

MAX_BYTES = 32 * 1024 * 1024
TIMEOUT_S = 300.0  # for one document
# All that the command gets of the environment: no key or token of the flow.
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "TESSDATA_PREFIX", "TMPDIR")


def ocr_pages(command: str, data: bytes, extension: str) -> list[str]:
    """What the command prints, in UTF-8, divided at form feeds as OCR programs do between pages.
    `{file}` in it stands for a copy of the document; no shell reads it. Raises UnusableError."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    nothing = subprocess.DEVNULL
    with tempfile.TemporaryFile() as printed, tempfile.NamedTemporaryFile(suffix=extension) as copy:
        copy.write(data)
        copy.flush()
        try:
            words = [word.replace("{file}", copy.name) for word in shlex.split(command)]
            process = subprocess.Popen(
                words, stdin=nothing, stdout=printed, stderr=nothing, env=kept, process_group=0
            )
            try:
                status = process.wait(TIMEOUT_S)
            finally:
                with suppress(ProcessLookupError):  # what it started ends with it
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        except (OSError, ValueError) as exc:
            raise UnusableError(f"OCR cannot be started: {exc}") from exc
        except subprocess.TimeoutExpired as exc:
            raise UnusableError(f"OCR took more than {TIMEOUT_S:g} s") from exc
        if status:
            raise UnusableError(f"OCR ended with status {status}")
        printed.seek(0)
        return printed.read(MAX_BYTES).decode("utf-8", "replace").split("\f")
