"""The core of the monitor can be used, and tested, without a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import monitor.core

CORE = Path(monitor.core.__file__).parent
IMPORT_EACH = """
import importlib, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
    if "textual" in sys.modules:
        sys.exit(f"{module} loads textual")
print("none loads textual")
"""


def test_the_core_loads_no_textual() -> None:
    modules = [f"monitor.core.{path.stem}" for path in sorted(CORE.glob("[!_]*.py"))]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, *modules], capture_output=True, text=True, timeout=60
    )
    assert (done.stderr, done.stdout) == ("", "none loads textual\n")
