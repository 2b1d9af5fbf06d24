"""What a journal keeps as it was is redacted before it is shown."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, cast

from interventions.retry.contract import LiveTurn
from interventions.times import to_text
from monitor.core.feeds import redacted
from monitor.widgets.text_view import text_of
from monitor.widgets.turn_text import live_turn
from tests.tui.scene import NOW

SECRET = "sk-abcdEFGH1234567890abcdEFGH1234567890"


def test_no_text_of_a_turn_shows_a_secret() -> None:
    told = f"with key {SECRET}"
    turn: LiveTurn = {
        "turn_id": 1,
        "status": "failed",
        "question": told,
        "doing": told,
        "error": told,
    }
    shown = redacted(turn)
    assert SECRET not in json.dumps(shown)
    assert "with key" in text_of(live_turn(shown, NOW))
    step = {"kind": "model", "name": "m", "started_at": to_text(NOW), "text": told}
    whole: LiveTurn = {**shown, "steps": [step], "answer": told, "sources": [told]}
    assert text_of(live_turn(whole, NOW)).count("with key") == 6
    assert SECRET not in text_of(live_turn(whole, NOW))
    assert turn["question"] == told


def test_a_timeline_goes_on_until_now_and_each_run_has_its_own_scale() -> None:
    def step(kind: str, name: str, minutes: float, took_s: float | None) -> dict[str, Any]:
        return {
            "kind": kind,
            "name": name,
            "status": "completed" if took_s else "running",
            "started_at": to_text(NOW - timedelta(minutes=minutes)),
            "duration_ms": took_s and took_s * 1000,
        }

    steps = [
        step("phase", "planner", 60, 1),
        step("model", "m", 60, 0.5),
        step("run", "resumed by ada", 1, 0.001),
        step("phase", "planner", 1, 15),
        step("phase", "coordinator", 0.75, None),
        {"kind": "phase"},
    ]
    turn: LiveTurn = {"turn_id": 1, "status": "running", "steps": steps}
    lines = text_of(live_turn(turn, NOW)).split("\n")[3:]
    assert [line.count("━") + line.count("─") for line in lines] == [20, 10, 0, 5, 15]
    assert lines[2] == "resumed by ada"
    assert lines[4].endswith("45.0 s")


def test_what_a_foreign_reader_calls_steps_may_be_anything() -> None:
    for steps in (None, "x", [1], [{"started_at": 3}], [{"kind": {}, "started_at": "2026"}]):
        turn = {"turn_id": 1, "status": "answered", "steps": steps}
        assert live_turn(cast(LiveTurn, turn), NOW)
