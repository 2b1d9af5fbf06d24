"""The log of requests, put aside for retention while others write to it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from unified_flow.engine.telemetry.query_log import QueryLog, RequestLine

DAY = date(2026, 1, 1)
WRITERS = 4


def test_several_that_put_it_aside_at_once_lose_no_line(tmp_path: Path) -> None:
    def work(number: int) -> None:
        log = QueryLog(home)
        together.wait()
        for each in range(3):
            log.append(RequestLine.without_turn(f"r{number}-{each}", "graceful", refused=False))
            log.put_aside(DAY)

    together = threading.Barrier(WRITERS)
    with ThreadPoolExecutor(WRITERS) as pool:
        for attempt in range(50):
            home = tmp_path / str(attempt)
            (home / "logs").mkdir(parents=True)
            list(pool.map(work, range(WRITERS)))
            files = [path.read_text() for path in (home / "logs").glob("rag_queries*.jsonl")]
            assert len(files) in (1, 2)
            assert sum(text.count("\n") for text in files) == 3 * WRITERS
