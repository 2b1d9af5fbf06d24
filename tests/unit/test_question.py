"""Bad input is the caller's: one clear line, and no turn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.answers import open_entries, scripted_flow
from unified_flow.errors import InputError
from unified_flow.turns.input_checks import checked_question

BAD = {
    "empty": "",
    "blank": " \n\t ",
    "too long": "x" * 2001,
    "huge": "x" * 10_000_000,
    "null byte": "a\0b",
    "escape": "a\x1b[31mb",
    "lone surrogate": "a\ud800b",
    "binary": bytes(range(256)).decode("latin-1"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_before_a_turn_begins(kind: str, home: Path) -> None:
    with pytest.raises(InputError):
        asyncio.run(scripted_flow(home).process("s", BAD[kind]))
    assert not (home / "shared_state" / "turns").exists()
    assert open_entries(home) == []


@pytest.mark.parametrize(
    "text", ["x" * 2000, "Vad är ett ämne?", "什么是主题？", "a\nb\tc", "👩‍🚀?"]
)
def test_what_people_ask_is_accepted(text: str) -> None:
    assert checked_question(f"  {text} ") == text


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u00a0\u3164", "\u2800", "\ufeff\u2028"])
def test_a_question_of_nothing_that_is_seen_is_empty(text: str) -> None:
    with pytest.raises(InputError) as refused:
        checked_question(text)
    assert refused.value.reason == "question_empty"
