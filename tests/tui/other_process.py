"""Another program at the same queue: one JSON command a line on stdin, one answer a line."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from filelock import FileLock

from interventions import InterventionQueue, InterventionRequest, QueueError
from interventions.home import lock_file

_LONGEST_S = 120.0  # the soak churns for a minute


def line_of(process: subprocess.Popen[str], longest_s: float = _LONGEST_S) -> str:
    """The next line it prints; a process that says nothing is a failure, and nobody waits on."""
    assert process.stdout
    assert select.select([process.stdout], [], [], longest_s)[0], f"nothing for {longest_s} s"
    return process.stdout.readline()


class OtherProcess:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        self._process.communicate()

    def put(self, home: Path, **fields: Any) -> str:
        """The id of the entry that the failure is in then."""
        return str(self._ask("put", home, fields))

    def burst(self, home: Path, count: int, **fields: Any) -> None:
        self._ask("burst", home, {"count": count, **fields})

    def churn(self, home: Path, seconds: float, per_second: int) -> int:
        """Puts and resolves at that rate; how many changes it made."""
        return int(self._ask("churn", home, {"seconds": seconds, "per_second": per_second}))

    def resolve(self, home: Path, intervention_id: str, note: str) -> None:
        self._ask("resolve", home, {"id": intervention_id, "note": note})

    def hold(self, home: Path, *, held: bool) -> int:
        """Take the queue's lock, or let it go; the number of the process."""
        return int(self._ask("hold", home, {"held": held}))

    def _ask(self, command: str, home: Path, fields: dict[str, Any]) -> Any:
        assert self._process.stdin
        line = {"command": command, "home": str(home), "fields": fields}
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer = json.loads(line_of(self._process))
        assert "error" not in answer, answer
        return answer["value"]


DEFAULTS: dict[str, Any] = {
    "type": "error",
    "severity": "high",
    "phase": "planner",
    "error_type": "ValueError",
    "error_message": "it broke",
    "session_id": "s",
    "turn_id": 0,
}


_locks: dict[str, FileLock] = {}


def _answer(command: str, queue: InterventionQueue, fields: dict[str, Any]) -> Any:
    if command == "put":
        return queue.put(InterventionRequest(**(DEFAULTS | fields))).intervention_id
    if command == "burst":
        for number in range(fields.pop("count")):
            own = {"session_id": f"burst-{number}", "error_type": f"Burst{number}Error"}
            queue.put(InterventionRequest(**(DEFAULTS | own | fields)))
        return None
    if command == "churn":
        return _churn(queue, **fields)
    if command == "hold":
        lock = _locks.setdefault(str(queue.home), FileLock(lock_file(queue.home)))
        lock.acquire() if fields["held"] else lock.release()
        return os.getpid()
    return queue.resolve(fields["id"], fields["note"], by="bob")["id"]


def _churn(queue: InterventionQueue, seconds: float, per_second: int) -> int:
    started, made = time.monotonic(), 0
    while (ahead := started + made / per_second - time.monotonic()) > -seconds:
        if made >= seconds * per_second:
            break
        time.sleep(max(ahead, 0))
        own = {"session_id": f"churn-{made}", "error_type": f"Churn{made % 7}Error"}
        admission = queue.put(InterventionRequest(**(DEFAULTS | own)))
        if made % 2 and admission.intervention_id:
            queue.resolve(admission.intervention_id, "churned")
            made += 1
        made += 1
    return made


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            value = _answer(asked["command"], InterventionQueue(asked["home"]), asked["fields"])
            answer = {"value": value}
        except QueueError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
