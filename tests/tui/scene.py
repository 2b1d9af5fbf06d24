"""Failures to look at, and waiting for what a person would see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input

from interventions import InterventionQueue, InterventionRequest
from tests.tui.other_process import DEFAULTS

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
NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)


def put(queue: InterventionQueue, **fields: Any) -> str:
    """A failure that is unlike all others unless its fields say so; its id."""
    number = len(queue.entries())
    own = {"error_type": f"Error{number:02}", "session_id": f"session-{number:02}"}
    admission = queue.put(InterventionRequest(**(DEFAULTS | own | fields)))
    assert admission.intervention_id
    return admission.intervention_id


def turn(failed: str) -> dict[str, Any]:
    """`context.turn` as the flow writes it."""
    place = PHASES.index(failed)
    ribbon = [
        {
            "name": name,
            "status": "completed" if n < place else "failed" if n == place else "not_run",
            "duration_ms": 12.5 * (n + 1) if n <= place else None,
        }
        for n, name in enumerate(PHASES)
    ]
    passage = {"chunk_id": 12, "source": "robots.md:5", "score": 7.25}
    return {
        "ribbon": ribbon,
        "question": "How do topics differ from services?",
        "input": {"query_analyzer": {"resolved_query": "topics, services"}},
        "evidence": [{"tool": "doc.search", "query": "topics services", "passages": [passage]}],
        "recipe": "recipes/planner.md",
        "recipe_digest": "ab12cd34",
        "model": "rules",
    }


def fill(queue: InterventionQueue, count: int, now: datetime = NOW) -> list[str]:
    """Varied failures, the same at every call."""
    kinds = (
        ("TimeoutError", "search took longer than 30 s", "coordinator", "web.fetch", "high"),
        ("JSONDecodeError", "Expecting value [bold]x[/bold]", "planner", None, "critical"),
        ("HTTPStatusError", "503 Service Unavailable", "synthesis", None, "high"),
        (
            "RetrievalError",
            "the index \x1b[31mbroke",
            "context_gatherer",
            "doc.search",
            "high",
        ),
        ("ValidationError", "a claim has no source", "validation", None, "medium"),
        ("KeyError", "'route'", "query_analyzer", None, "critical"),
    )
    ids = []
    for number in range(count):
        error, message, phase, tool, severity = kinds[number % len(kinds)]
        moment = now - timedelta(minutes=17 * number + 1)
        ids.append(
            put(
                queue,
                id=f"int_{moment:%Y%m%d_%H%M%S}_{number:06x}",
                error_type=error,
                error_message=f"{message} {'abcdefghij'[number // len(kinds)] * 3}",
                phase=phase,
                tool=tool,
                severity=severity,
                created_at=moment,
                session_id=f"session-{number // 3}",
                turn_id=number + 1,
                context={"turn": turn(phase)},
                environment={"git_commit": "0123abc"},
            )
        )
    return ids


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Waits for what a person would see; fails after half a minute."""
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"it never came to that\n{condition}")


async def paste(pilot: Pilot[Any], text: str) -> None:
    """Text into the field that has the focus, or is about to have it, all at once."""
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    pilot.app.post_message(Paste(text))
    await pilot.pause()
