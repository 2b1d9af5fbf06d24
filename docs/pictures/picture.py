"""Draws the pictures of the monitor beside it, in both themes: python docs/pictures/picture.py

The queue is made here, so the picture changes only when the monitor does.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from freezegun import freeze_time

from interventions import InterventionQueue, InterventionRequest
from interventions.settings import MonitorSettings
from monitor.app import Monitor, screen_svg
from monitor.core.source import LiveSource

NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)
SIZE = (110, 32)
THEMES = ("dark", "light")
PICTURES = {"monitor": (), "monitor-trends": ("5",), "monitor-resolve": ("r",)}
PHASES = (
    "query_analyzer",
    "reflection",
    "context_gatherer",
    "planner",
    "coordinator",
    "synthesis",
    "validation",
    "save",
)
FAILURES: tuple[tuple[str, str, str, str | None, str, str, int], ...] = (
    ("JSONDecodeError", "Expecting ',' delimiter", "planner", None, "critical", "ros", 4),
    ("ConnectError", "Connection refused", "reflection", None, "critical", "ci", 9),
    ("PermissionError", "/srv/private is outside the roots", "coordinator", "file.read", "high",
     "ros", 21),
    ("RetrievalError", "the index is older than its documents", "context_gatherer", "doc.search",
     "high", "batch-7", 38),
    ("ReadTimeout", "no reply within 60 s", "synthesis", None, "high", "ci", 52),
    ("LoopLimitError", "5 of 5 planning iterations", "planner", None, "high", "kitchen", 95),
    ("ValidationError", "1 of 3 claims has no source", "validation", None, "medium", "tea", 170),
    ("OSError", "No space left on device", "save", None, "medium", "batch-7", 260),
)  # fmt: skip
NOTES = ("the recipe asks for JSON alone", "raised the token budget", "restarted the server")
TRACEBACK = """\
{error}: {message}
  File "tools/plan.py", line 41, in read_plan
       38 | def read_plan(reply: str) -> Plan:
       39 |     \"\"\"The plan in a model's reply.\"\"\"
       40 |     body = reply.strip().removeprefix("```json")
  >    41 |     return Plan(**json.loads(body))
       42 |
       43 |
       44 | def goals(plan: Plan) -> list[Goal]:
  File "tools/plan.py", line 77, in next_step
       75 |     reply = self.model.ask(prompt)
       76 |     try:
  >    77 |         plan = read_plan(reply)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        queue = InterventionQueue(folder)
        _past(queue)
        with freeze_time(NOW):
            for number, failure in enumerate(FAILURES):
                _put(queue, number, *failure)
            _more(queue)
        for name, keys in PICTURES.items():
            for theme in THEMES:
                target = Path(__file__).with_name(f"{name}-{theme}.svg")
                target.write_text(asyncio.run(_drawn(queue, theme, keys)), encoding="utf-8")
                print(target)


async def _drawn(queue: InterventionQueue, theme: str, keys: Sequence[str]) -> str:
    source = LiveSource(queue, lambda: NOW)
    source.title = "~/project"
    settings = MonitorSettings(theme=theme)
    app = Monitor(source, source.read(), lambda: NOW, settings=settings)
    async with app.run_test(size=SIZE) as pilot:
        for key in ("", *keys):
            await pilot.press(*filter(None, [key]))
            await pilot.pause(1)  # what is read for it is there then
        return screen_svg(app)


def _past(queue: InterventionQueue) -> None:
    """A day of failures that were resolved, more of them towards its end."""
    for number in range(60):
        minutes = 1400 - 22 * number + number % 3 * 3
        error, message, phase, tool, severity, session, _ = FAILURES[number * number % 8]
        with freeze_time(NOW - timedelta(minutes=minutes)):
            place = 100 + number
            name = _put(queue, place, error, message, phase, tool, severity, session, minutes)
        with freeze_time(NOW - timedelta(minutes=minutes - 12)):
            assert name
            queue.resolve(name, NOTES[number % len(NOTES)], by="ada")


def _put(
    queue: InterventionQueue,
    number: int,
    error: str,
    message: str,
    phase: str,
    tool: str | None,
    severity: str,
    session: str,
    minutes: int,
) -> str | None:
    moment = NOW - timedelta(minutes=minutes)
    failure = InterventionRequest(
        id=f"int_{moment:%Y%m%d_%H%M%S}_{0x5A1C07 + number * 0x1F3D:06x}",
        type="limit_exceeded" if error == "LoopLimitError" else "error",
        severity=severity,
        phase=phase,
        tool=tool,
        error_type=error,
        error_message=message,
        session_id=session,
        turn_id=41 + number,
        context={"turn": _turn(phase)},
        traceback=TRACEBACK.format(error=error, message=message),
        location="tools/plan.py:41",
        created_at=moment,
    )
    return queue.put(failure).intervention_id


def _more(queue: InterventionQueue) -> None:
    """One came back after it was resolved, one is alike, one is snoozed."""
    known = queue.entries()[-len(FAILURES) :]
    queue.resolve(known[3]["id"], "rebuilt the index", by="ada")
    _put(queue, 8, *FAILURES[3])
    for number in (9, 10):
        error, message, phase, tool, severity, _, minutes = FAILURES[4]
        _put(queue, number, error, message, phase, tool, severity, f"batch-{number}", minutes + 3)
    queue.snooze(known[7]["id"], until_n_more=10, by="ada")
    queue.assign(known[5]["id"], "ada", by="ada")


def _turn(failed: str) -> dict[str, Any]:
    place = PHASES.index(failed)
    ribbon = [
        {
            "name": name,
            "status": "completed" if n < place else "failed" if n == place else "not_run",
            "duration_ms": 20.0 + 310 * n if n <= place else None,
        }
        for n, name in enumerate(PHASES)
    ]
    question = "How do topics differ from services?"
    return {"ribbon": ribbon, "question": question, "model": "qwen2.5-1.5b"}


if __name__ == "__main__":
    main()
