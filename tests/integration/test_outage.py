"""The short form of `benchmarks/outage.py`: an outage over HTTP, and every turn is done once.

SOAK=1 fails a thousand, and once more with room in the queue.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests import forked

OUTAGE = Path(__file__).parents[2] / "benchmarks/outage.py"
SOAK = bool(os.environ.get("SOAK"))
REQUESTS = 1_000 if SOAK else 24  # an entry counts the turns after the tenth


@pytest.mark.long
@pytest.mark.parametrize("full", [True, False] if SOAK else [True])
def test_no_turn_of_an_outage_is_lost_or_done_twice(full: bool) -> None:
    """With `full` no failure finds room in the queue, until others are dismissed."""
    words = ["--requests", str(REQUESTS), "--clients", "12", *(["--full"] if full else [])]
    done = forked.run(
        [sys.executable, str(OUTAGE), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert f"{REQUESTS} x 502" in done.stdout
    assert re.search(rf"known +{REQUESTS} turns", done.stdout)
    assert "lost 0, done twice 0" in done.stdout
