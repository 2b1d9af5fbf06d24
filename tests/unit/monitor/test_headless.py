"""The core of the monitor can be used, and tested, without a terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest

CORE = (
    "archived",
    "arguments",
    "bundle",
    "changes",
    "clipboard",
    "editor",
    "feeds",
    "listing",
    "logtail",
    "model",
    "snapshot",
    "source",
    "widgets.rows",
)


@pytest.mark.parametrize("module", CORE)
def test_the_core_loads_no_textual(module: str) -> None:
    code = f"import monitor.{module}, sys; print('textual' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
