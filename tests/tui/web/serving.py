"""A real `monitor --web` as another process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tui.other_process import line_of


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """Its address, token and all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "monitor", "--web", "--home", str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield line_of(process, 60).strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
