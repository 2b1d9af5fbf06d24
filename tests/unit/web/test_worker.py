"""The process that reads a page, held to its bounds."""

from __future__ import annotations

import subprocess
import sys

MEMORY = 200 * 1024 * 1024
OUT_OF_MEMORY = 3


def test_a_page_that_takes_all_memory_ends_the_process_that_reads_it() -> None:
    numbers = b"[" + b"0.1," * 5_000_000 + b"1]"  # 20 MB, and eight times that once it is read
    done = subprocess.run(
        [sys.executable, "-m", "unified_flow.web.worker", "json", str(MEMORY), "30"],
        input=numbers,
        capture_output=True,
        check=False,
    )
    assert done.returncode == OUT_OF_MEMORY
    assert done.stdout == b""
