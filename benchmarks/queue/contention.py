"""Several processes that put as fast as they can into one queue, for a given time.

Every put is counted onto an entry that is there (limit of the error type), so that the file keeps
its size and a process's puts per second can be compared.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from interventions import InterventionQueue, InterventionRequest
from interventions.admission.preparation import prepare

PROCESSES = 8


def run(home: Path, processes: int, seconds: float) -> list[list[float]]:
    """The latencies of each process, in seconds."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    pipes = [context.Pipe(duplex=False) for _ in range(processes)]
    workers = [
        context.Process(target=_work, args=(home, number, seconds, start, send))
        for number, (_, send) in enumerate(pipes)
    ]
    for worker in workers:
        worker.start()
    latencies = [receive.recv() for receive, _ in pipes]
    for worker in workers:
        worker.join()
    return latencies


def _work(home: Path, number: int, seconds: float, start: Barrier, send: Connection) -> None:
    logging.getLogger("interventions").setLevel(logging.CRITICAL + 1)
    queue = InterventionQueue(home, max_size=10**9, max_per_error_type=1, lock_timeout_s=60)
    failure = prepare(
        InterventionRequest(
            type="error",
            severity="high",
            phase="coordinator",
            error_type="LookupError",
            error_message=f"no passage for {'abcdefgh'[number]}",
            session_id=f"worker-{number}",
            turn_id=number,
        )
    )
    latencies = []
    start.wait()
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        queue.put_prepared(failure)
        latencies.append(time.perf_counter() - now)
    send.send(latencies)
