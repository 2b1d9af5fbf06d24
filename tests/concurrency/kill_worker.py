"""Does what programs and people do to one queue, until it is killed; a line of stdout for each
thing that was acknowledged.

kill_worker HOME NAME SEED [cli]
"""

from __future__ import annotations

import io
import json
import logging
import random
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from interventions import InterventionQueue, InterventionRequest
from interventions.cli import app
from interventions.entry import is_open
from interventions.errors import ConflictError, NotFoundError
from interventions.recovery import recover

ROOM = 25


def main() -> None:
    logging.getLogger("interventions").setLevel(logging.CRITICAL + 1)
    home, name, chance = Path(sys.argv[1]), sys.argv[2], random.Random(sys.argv[3])
    queue = InterventionQueue(home, max_size=ROOM, max_per_session=10**6, lock_timeout_s=60)
    act = by_command if sys.argv[4:] == ["cli"] else by_call
    number = 0
    while True:
        action = chance.choice(
            ["put", "put", "put", "resolve", "resolve", "snooze", "undo", "drain"]
        )
        if action == "put":
            number += 1
            admission = queue.put(request(name, number))
            tell(put=admission.intervention_id, kind=str(admission.kind), turn=[name, number])
            continue
        waiting = [entry["id"] for entry in queue.entries() if is_open(entry)]
        if waiting or action == "drain":
            act(queue, name, action, chance.choice(waiting or [""]))


def request(name: str, number: int) -> InterventionRequest:
    return InterventionRequest(
        type="error",
        severity="high",
        phase="planner",
        error_type=f"E{name}{number}",
        error_message=f"{name} failed",
        session_id=name,
        turn_id=number,
        environment={"known": True},
    )


def by_call(queue: InterventionQueue, name: str, action: str, wanted: str) -> None:
    try:
        if action == "drain":
            tell(drained=recover(queue, lost=False, by=name).put)
        elif action == "undo":
            _, entry = queue.undo(wanted, by=name)
            tell(change=action, id=entry["id"], version=entry["version"])
        else:
            options: dict[str, Any] = (
                {"until_n_more": 3} if action == "snooze" else {"note": "done"}
            )
            entry = getattr(queue, action)(wanted, by=name, **options)
            tell(change=action, id=entry["id"], version=entry["version"])
    except (ConflictError, NotFoundError):
        pass  # somebody else was first


def by_command(queue: InterventionQueue, name: str, action: str, wanted: str) -> None:
    words = {
        "drain": ["drain"],
        "undo": ["undo", wanted],
        "resolve": ["resolve", wanted, "--note", "done"],
        "snooze": ["snooze", wanted, "--until-n-more", "3"],
    }[action]
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(io.StringIO()):
        home = ["--home", str(queue.home)]
        code = app([*words, "--by", name, "--json", *home], standalone_mode=False)
    if code:
        return
    answer = json.loads(said.getvalue())
    if action == "drain":
        tell(drained=answer["put"])
        return
    rows = (value if isinstance(value, list) else [value] for value in answer.values())
    for entry in (row for found in rows for row in found if isinstance(row, dict)):
        if entry.get("id") == wanted and "version" in entry:
            tell(change=action, id=wanted, version=entry["version"])


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
