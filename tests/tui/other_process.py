"""Another program at the same queue: one JSON command a line on stdin, one answer a line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from interventions import InterventionQueue, InterventionRequest, QueueError


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

    def _ask(self, command: str, home: Path, fields: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        line = {"command": command, "home": str(home), "fields": fields}
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
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
