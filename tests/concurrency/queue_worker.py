"""What one writer process does; a process of its own so that it can really be killed.

queue_worker HOME puts NAME COUNT       put COUNT failures, acknowledge each on stdout
queue_worker HOME forever NAME          put until killed
queue_worker HOME mixed NAME COUNT      put, and resolve what was put before
queue_worker HOME plain NAME COUNT      add to the file under plain filelock, as a user might
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
from pathlib import Path

from filelock import FileLock

from interventions import InterventionQueue, InterventionRequest
from interventions.home import lock_file, queue_file

NO_CAP = 10**9


def request(name: str, number: int) -> InterventionRequest:
    return InterventionRequest(
        type="error",
        severity="high",
        phase="planner",
        error_type=f"E{name}",
        error_message=f"{name} failed",
        session_id=name,
        turn_id=number,
        context={"pad": "x" * 500},
        environment={"known": True},
    )


def main() -> None:
    logging.getLogger("interventions").setLevel(logging.CRITICAL + 1)
    home, what, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    count = int(sys.argv[4]) if len(sys.argv) > 4 else None
    queue = InterventionQueue(
        home,
        # Room for what a writer that was killed could not close any more.
        max_size=NO_CAP if what != "forever" else 300,
        max_per_session=NO_CAP,
        max_per_error_type=NO_CAP,
        lock_timeout_s=60,
    )
    numbers = range(count) if count is not None else itertools.count()
    for number in numbers:
        if what == "plain":
            _plain(home, name, number)
            continue
        admission = queue.put(request(name, number))
        print(admission.intervention_id, flush=True)
        if what == "mixed" and number % 2 and admission.intervention_id:
            queue.resolve(admission.intervention_id, "done", by=name)
        if what == "forever" and admission.intervention_id:
            # Never full: what was acknowledged is closed and moves to the archive.
            queue.resolve(admission.intervention_id, "done", by=name)


def _plain(home: Path, name: str, number: int) -> None:
    path = queue_file(home)
    with FileLock(lock_file(home)):
        document = json.loads(path.read_text())
        entry = {
            "id": f"int_20260104_103000_{name}{number:04d}",
            "created_at": "2026-01-04T10:30:00Z",
        }
        document["interventions"].append(entry)
        temporary = path.with_name(f"foreign.{os.getpid()}")
        temporary.write_text(json.dumps(document, indent=2))
        temporary.replace(path)
    print(entry["id"], flush=True)


if __name__ == "__main__":
    main()
