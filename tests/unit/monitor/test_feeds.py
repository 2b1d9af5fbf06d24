"""What a journal keeps as it was is redacted before it is shown."""

from __future__ import annotations

import json

from interventions.retry.entry_points import LiveTurn
from monitor.core.feeds import redacted
from monitor.widgets.turn_text import live_turn

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
    assert SECRET not in json.dumps(shown) + live_turn(shown).plain
    assert "with key" in live_turn(shown).plain
    assert turn["question"] == told
