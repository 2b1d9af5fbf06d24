"""A language model for the voice, and rules for what they do better: the default of `mix`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.answers import journal_lines
from unified_flow.flow import UnifiedFlow
from unified_flow.models.prompt import prompt
from unified_flow.models.scripted import ScriptedModel
from unified_flow.turns.results import Draft
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

QUESTION = "What is a topic?"
BY_RULES = ("query_analyzer", "reflection", "planner", "validation")
TOPIC = "A topic is a named bus over which nodes exchange messages."
GOOD = Draft(response="A topic is a named bus for the messages of nodes.")
REFUSAL = Draft(abstained=True, response="The documents do not say.")


def asked(home: Path, docs: Path, question: str, *drafts: Draft) -> tuple[Turn, ScriptedModel]:
    voice = ScriptedModel({"synthesis": list(drafts)})
    given: dict[str, Any] = {"extra_models": {"scripted": voice}, "model": "scripted"}
    flow = UnifiedFlow(wire(home, docs=[docs], mix="measured", **given))

    async def turn() -> Turn:
        try:
            return await flow.process("s", question)
        finally:
            await flow.aclose()

    return asyncio.run(turn()), voice


def models_asked(home: Path) -> set[tuple[str, str]]:
    lines = journal_lines(home)
    return {(line["phase"], line["model"]) for line in lines if line["event"] == "model_called"}


def test_the_voice_alone_is_asked_and_cited_in_code(home: Path, docs: Path) -> None:
    turn, voice = asked(home, docs, QUESTION, GOOD)
    assert (turn.status, turn.response) == ("answered", GOOD.response)
    assert [citation.quote for citation in turn.citations] == [TOPIC]
    assert models_asked(home) == {
        ("synthesis", "scripted"),
        *(
            (phase, "embedded")
            for phase in ("query_analyzer", "reflection", "planner", "validation")
        ),
    }
    told = prompt(voice.calls[0]).messages[1]["content"]
    assert TOPIC in told
    assert "Bread needs flour" not in told


def test_where_nothing_is_found_the_voice_is_not_asked(home: Path, docs: Path) -> None:
    turn, voice = asked(home, docs, "Who painted the ceiling of the chapel in Rome?")
    assert (turn.status, turn.abstained, voice.calls) == ("answered", True, [])
    assert ("synthesis", "embedded") in models_asked(home)


def test_a_voice_that_abstains_from_what_is_stated_is_asked_again(home: Path, docs: Path) -> None:
    turn, voice = asked(home, docs, QUESTION, REFUSAL, GOOD)
    assert (turn.response, turn.abstained, len(voice.calls)) == (GOOD.response, False, 2)


def test_a_voice_that_insists_has_its_way(home: Path, docs: Path) -> None:
    turn, _ = asked(home, docs, QUESTION, REFUSAL, REFUSAL)
    assert (turn.response, turn.abstained) == (REFUSAL.response, True)


def test_an_answer_that_calls_itself_none_is_an_answer(home: Path, docs: Path) -> None:
    said = GOOD.model_copy(update={"abstained": True})
    turn, voice = asked(home, docs, QUESTION, said)
    assert (turn.response, turn.abstained, len(voice.calls)) == (GOOD.response, False, 1)


@pytest.mark.parametrize("section", ["evidence", "coordinator"])
def test_a_recipe_says_what_the_voice_is_shown(section: str, home: Path, docs: Path) -> None:
    text = Path(wire(home).recipe("synthesis").path).read_text()
    (home / "recipes").mkdir()
    (home / "recipes/synthesis.md").write_text(text.replace(f'"{section}", ', ""))
    _, voice = asked(home, docs, QUESTION, GOOD)
    told = prompt(voice.calls[0]).messages[1]["content"]
    assert f'name="{section}"' not in told
    assert TOPIC in told


def test_an_answer_in_a_revision_is_one_whatever_it_calls_itself(home: Path, docs: Path) -> None:
    turn, _ = asked(home, docs, QUESTION, REFUSAL, GOOD.model_copy(update={"abstained": True}))
    assert (turn.response, turn.abstained) == (GOOD.response, False)


def test_words_that_say_that_nothing_is_said_are_an_abstention(home: Path, docs: Path) -> None:
    (docs / "ceiling.md").write_text("# Chapel\n\nThe chapel in the village has a red roof.\n")
    refusal = Draft(response="The documents do not mention who painted the chapel's ceiling.")
    turn, voice = asked(home, docs, "Why did Michelangelo paint the chapel's ceiling?", refusal)
    assert (turn.abstained, turn.citations, len(voice.calls)) == (True, [], 1)


def test_a_question_that_wants_more_than_a_fact_gets_whole_passages(home: Path, docs: Path) -> None:
    """If nothing comes of them, the likeliest sentences."""
    said = Draft(response="Topics are for continuous data streams such as sensor data.")
    turn, voice = asked(home, docs, "Why are topics for sensor data?", REFUSAL, said)
    first, second = (prompt(call).messages[1]["content"] for call in voice.calls)
    assert '<section name="coordinator">' in first
    assert '<section name="evidence">' in second
    assert turn.response == said.response


def test_a_refusal_that_says_it_is_none_is_not_taken_for_an_answer(home: Path, docs: Path) -> None:
    refusal = Draft(response="The answer is not stated in the given documents.")
    said = Draft(response="Topics are for continuous data streams such as sensor data.")
    turn, voice = asked(home, docs, "Why are topics for sensor data?", refusal, said)
    assert (turn.response, turn.abstained, len(voice.calls)) == (said.response, False, 2)
