"""Whole turns that follow others."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from interventions import InterventionQueue
from tests import in_process
from tests.answers import ANALYSIS, QUESTION, scripted_flow
from unified_flow import UnifiedFlow
from unified_flow.errors import InputError
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn

EARLIER = (PriorTurn(turn_id=1, question=QUESTION, answer="A topic is a named bus."),)

run = partial(in_process.run, "unified_flow")


def follow_up(flow: UnifiedFlow, question: str) -> Turn:
    async def run() -> Turn:
        async with flow:
            return await flow.process("s", question, history=EARLIER, persist=False)

    return asyncio.run(run())


def test_phase_0_says_what_the_conversation_is_about(home: Path, docs: Path) -> None:
    """Whichever model analyses the question."""
    for flow in (UnifiedFlow.from_config(home, docs=[docs]), scripted_flow(home, docs)):
        turn = follow_up(flow, "Who reads what is sent?")
        assert turn.sections.query_analyzer is not None
        weighed = turn.sections.query_analyzer.conversation
        assert weighed["topic"] > weighed["bus"] > 0
    assert ANALYSIS.conversation == {}


HURRICANES = {"Gloria": "1985", "Isaac": "2012", "Katrina": "2005", "Wilma": "2006"}


def asked(home: Path, folder: Path, question: str, *earlier: PriorTurn) -> Turn:
    async def run() -> Turn:
        async with UnifiedFlow.from_config(home, docs=[folder]) as flow:
            return await flow.process("s", question, history=earlier, persist=False)

    return asyncio.run(run())


def test_a_thing_that_nobody_has_named_is_asked_for(home: Path, docs: Path) -> None:
    turn = asked(home, docs, "What is the secret behind the success of this burger?")
    assert turn.status == "clarify"
    assert turn.response == "What does “this burger” refer to?"
    turn = asked(home, docs, "How do I fix this error?")
    assert turn.response == "What does “this error” refer to?"
    for clear in (
        "When I call the topic, why does this method return nothing?",
        "Why does this project exist?",
        "How do I fix this error: `no such topic`?",
    ):
        assert asked(home, docs, clear).status == "answered"
    named = PriorTurn(turn_id=1, question="What is a Jucy Lucy?", answer="A burger with cheese.")
    question = "What is the secret behind the success of this burger?"
    assert asked(home, docs, question, named).status == "answered"


def test_one_of_several_things_is_asked_for_with_their_names(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "storms"
    folder.mkdir()
    for name, year in HURRICANES.items():
        text = f"# Hurricane {name}\n\nRoads were closed when Hurricane {name} came in {year}.\n"
        (folder / f"{name}.md").write_text(text)
    turn = asked(home, folder, "When were roads closed because of the hurricane?")
    assert turn.status == "clarify"
    assert turn.sections.planner is not None
    assert turn.sections.planner.route == "clarify"
    assert all(name in (turn.response or "") for name in HURRICANES)
    assert asked(home, folder, "When did Hurricane Isaac close roads?").status == "answered"
    earlier = PriorTurn(turn_id=1, question="What is Hurricane Isaac?", answer="A storm.")
    question = "When were roads closed because of the hurricane?"
    assert asked(home, folder, question, earlier).status == "answered"


def test_what_documents_call_one_thing_is_not_asked_for(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    for name in ("Django", "Wagtail", "Mezzanine"):
        text = f"# {name} admin\n\nOpen the admin to change the colours of the {name} admin.\n"
        (folder / f"{name}.md").write_text(text)
    assert asked(home, folder, "How do I change colours in the admin?").status == "answered"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Remember that my password is hunter2", "Nothing was remembered: this seems to hold"),
        ("Merke dir, dass mein Passwort hunter2 ist", "Es wurde nichts gemerkt: Das scheint ein"),
        ("Merk dir bitte: mein Passwort lautet hunter2", "Es wurde nichts gemerkt: Das scheint"),
    ],
)
def test_a_password_is_refused_in_the_answer_and_not_shown_again(
    home: Path, docs: Path, said: str, answer: str
) -> None:
    async def remember() -> Turn:
        async with UnifiedFlow.from_config(home, docs=[docs]) as flow:
            return await flow.process("s", said)

    turn = asyncio.run(remember())
    assert turn.status == "answered"
    assert (turn.response or "").startswith(answer)
    assert InterventionQueue(home).open_count() == 0
    for shown in (["turns", "show", "last"], ["turns", "show", "last", "--json"]):
        assert "hunter2" not in run(*shown, home=home).stdout


def test_a_history_may_be_dicts_and_what_is_none_is_refused(home: Path, docs: Path) -> None:
    async def ask(*history: object) -> Turn:
        async with UnifiedFlow.from_config(home, docs=[docs]) as flow:
            return await flow.process("s", "Who reads what is sent?", history=history)  # type: ignore[arg-type]

    turn = asyncio.run(ask({"question": QUESTION, "answer": "A topic is a named bus."}))
    assert turn.sections.query_analyzer is not None
    assert "topic" in turn.sections.query_analyzer.conversation
    for wrong in ({"role": "user", "content": "Hello"}, "Hello"):
        with pytest.raises(InputError, match="history must be earlier turns"):
            asyncio.run(ask(wrong))


def test_arithmetic_without_a_result_is_answered_with_the_reason(home: Path, docs: Path) -> None:
    turn = asked(home, docs, "9**9**9**9")
    assert turn.status == "answered"
    assert turn.response == "There is no result: 9**9**9**9 is too large to calculate."


def test_a_question_in_another_language_is_told_so(home: Path, docs: Path) -> None:
    """In its own language; in English for one without a file."""
    swedish = asked(home, docs, "Hur länge måste degen vila innan den bakas?")
    assert swedish.abstained
    assert "De är på ett annat språk (en) än frågan" in (swedish.response or "")
    italian = asked(home, docs, "Quanto tempo deve riposare la pasta prima di essere cotta?")
    assert "They are in another language (en) than the question" in (italian.response or "")
    english = asked(home, docs, "Who painted the ceiling of the old chapel?")
    assert english.abstained
    assert "language" not in (english.response or "")
