"""What a language model is asked, by its size: a small one for the words, a large one for all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.answers import COMPLETE, SEARCH, journal_lines, script
from unified_flow.flow import UnifiedFlow
from unified_flow.models.prompt import prompt
from unified_flow.models.scripted import ScriptedModel
from unified_flow.turns.results import Draft, ToolChoice
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

QUESTION = "What is a topic?"
TOPIC = "A topic is a named bus over which nodes exchange messages."
GOOD = Draft(response="A topic is a named bus for the messages of nodes [1].")
REFUSAL = Draft(abstained=True, response="The documents do not say.")
TOOLS = '''
from unified_flow import tool

@tool(access="reads")
def weather(city: str) -> str:
    """The weather in a city right now."""
    return f"It is 18 degrees and raining in {city}."
'''


def asked(
    home: Path, docs: Path, question: str, size: str, answers: dict[str, Any], **given: Any
) -> tuple[Turn, ScriptedModel]:
    model = ScriptedModel(answers)
    own = {"extra_models": {"scripted": model}, "model": "scripted", "size": size, **given}
    flow = UnifiedFlow(wire(home, docs=[docs], **own))

    async def turn() -> Turn:
        try:
            return await flow.process("s", question)
        finally:
            await flow.aclose()

    return asyncio.run(turn()), model


def small(home: Path, docs: Path, question: str, *drafts: Draft) -> tuple[Turn, ScriptedModel]:
    return asked(home, docs, question, "small", {"synthesis": list(drafts)})


def models_asked(home: Path) -> set[tuple[str, str]]:
    lines = journal_lines(home)
    return {(line["phase"], line["model"]) for line in lines if line["event"] == "model_called"}


def user(model: ScriptedModel, place: int = 0) -> str:
    return prompt(model.calls[place]).messages[1]["content"]


def test_a_small_model_finds_the_words_in_passages_that_are_marked(home: Path, docs: Path) -> None:
    turn, voice = small(home, docs, QUESTION, GOOD)
    assert (turn.status, turn.response) == ("answered", GOOD.response)
    assert [citation.quote for citation in turn.citations] == [TOPIC]
    by_rules = ("query_analyzer", "reflection", "planner", "validation")
    assert models_asked(home) == {
        ("synthesis", "scripted"),
        *((phase, "embedded") for phase in by_rules),
    }
    assert f"<mark>{TOPIC}</mark>" in user(voice)
    assert '<document number="1"' in user(voice)


def test_sentences_that_rules_would_not_quote_are_marked_if_they_may_hold_the_answer(
    home: Path, docs: Path
) -> None:
    """Told to look into one sentence, a small model finds its answer there and nowhere else."""
    repeats = "Much faster algorithms have been devised to test whether a large number is prime."
    answers = "One of them is the Miller–Rabin test, which errs with a small probability."
    (docs / "primes.md").write_text(f"# Primes\n\n{repeats} {answers}\n")
    question = "Which algorithm tests whether a large number is prime?"
    turn, voice = small(home, docs, question, Draft(response="A large number is prime [1]."))
    assert [citation.quote for citation in turn.citations] == [repeats]
    assert f"<mark>{repeats}</mark> <mark>{answers}</mark>" in user(voice)


def test_marks_do_not_lie_within_one_another(home: Path, docs: Path) -> None:
    """A file that is read is quoted as a whole, and the search for the rest quotes a part of it."""
    (docs / "bus.md").write_text(f"# Topic\n\n{TOPIC}\n")
    _, voice = small(home, docs, f"Read {docs.name}/bus.md and what is a topic?", GOOD)
    passages = user(voice).partition("</section>")[0]
    assert f"<mark># Topic\n\n{TOPIC}</mark>" in passages
    assert f'heading="Topic">\n<mark>{TOPIC}</mark>' in passages


def test_a_large_model_does_every_phase_and_sees_unmarked_passages(home: Path, docs: Path) -> None:
    turn, model = asked(home, docs, QUESTION, "auto", script(synthesis=GOOD))
    assert turn.status == "answered"
    assert {name for _, name in models_asked(home)} == {"scripted"}
    told = user(model, [call.phase for call in model.calls].index("synthesis"))
    assert TOPIC in told
    assert "<mark>" not in told


def test_where_rules_see_no_answer_a_small_model_is_not_asked(home: Path, docs: Path) -> None:
    turn, voice = small(home, docs, "Who painted the ceiling of the chapel in Rome?")
    assert (turn.status, turn.abstained, voice.calls) == ("answered", True, [])


def test_where_nothing_was_found_no_model_is_asked(home: Path, docs: Path) -> None:
    search = SEARCH.model_copy(
        update={"tool_requests": [SEARCH.tool_requests[0].model_copy(update={"args": {
            "query": "xylophone"}})]}
    )  # fmt: skip
    answers = script(planner=[search, COMPLETE])
    turn, model = asked(home, docs, "What is a xylophone?", "large", answers)
    assert turn.abstained
    assert "synthesis" not in [call.phase for call in model.calls]


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_model_that_abstains_has_its_way(home: Path, docs: Path, size: str) -> None:
    turn, _ = asked(home, docs, QUESTION, size, script(synthesis=REFUSAL))
    assert (turn.response, turn.abstained, turn.citations) == (REFUSAL.response, True, [])


def test_a_fact_is_quoted_where_a_small_model_sees_an_answer(home: Path, docs: Path) -> None:
    """It reads the right passage wrongly more often than rules quote the wrong sentence."""
    built = "The pier was built in 1871 and mended in 1902."
    (docs / "pier.md").write_text(f"# Pier\n\n{built}\n")
    misread = Draft(response="The pier was built in 1902 [1].")
    turn, voice = small(home, docs, "When was the pier built?", misread)
    assert (turn.status, len(voice.calls)) == ("answered", 1)
    assert "1902 [1]" not in (turn.response or "")
    assert [citation.quote for citation in turn.citations] == [built]


@pytest.mark.parametrize("question", ["What happens to a topic?", "When should I use a topic?"])
def test_an_explanation_is_in_a_small_models_words(home: Path, docs: Path, question: str) -> None:
    turn, _ = small(home, docs, question, GOOD)
    assert turn.response == GOOD.response


@pytest.mark.parametrize(
    ("said", "abstained"), [("Clara Voss mended it.", True), ("Two sailors mended it [1].", False)]
)
def test_a_fact_in_doubt_takes_a_model_that_reads_the_same_sentence(
    home: Path, tmp_path: Path, said: str, abstained: bool
) -> None:
    """Rules alone would quote it, though nobody mended the lamp."""
    pages = {
        "pier": "The pier was built in 1871 by the engineer Clara Voss.",
        "bees": "A hive holds forty thousand bees. The keeper opens it once a week.",
        "lamp": "The lamp of the harbour was painted red in 1902 by two sailors.",
    }
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    turn, _ = small(home, folder, "Who mended the lamp?", Draft(response=said))
    assert turn.abstained == abstained
    assert "Lamp" in (turn.response or "")


def test_an_answer_that_calls_itself_none_is_an_answer(home: Path, docs: Path) -> None:
    said = GOOD.model_copy(update={"abstained": True})
    turn, voice = small(home, docs, QUESTION, said)
    assert (turn.response, turn.abstained, len(voice.calls)) == (GOOD.response, False, 1)


def test_what_a_small_model_makes_up_is_replaced_by_quotes(home: Path, docs: Path) -> None:
    wrong = Draft(response="A topic is a bus that Ada Lovelace named in 1843 [1].")
    turn, voice = small(home, docs, QUESTION, wrong)
    assert (turn.status, len(voice.calls)) == ("answered", 1)
    assert "Lovelace" not in (turn.response or "")
    assert TOPIC in (turn.response or "")


def test_words_that_say_that_nothing_is_said_are_an_abstention(home: Path, docs: Path) -> None:
    refusal = Draft(response="The documents do not mention who named the topic.")
    turn, _ = asked(home, docs, QUESTION, "large", script(synthesis=refusal))
    assert (turn.abstained, turn.citations) == (True, [])


@pytest.mark.parametrize(
    ("said", "abstained"),
    [
        ("The documents do not state the answer. [1]", True),
        ("The documents don\N{RIGHT SINGLE QUOTATION MARK}t say. [1]", True),
        ("Unfortunately, the passages do not mention this [1].", True),
        ("There is no information about this in the documents [1].", True),
        ("The documents state that a topic is a named bus [1], but do not mention why.", False),
        ("The passage says a topic is a bus [1], but it does not say why.", False),
    ],
)
def test_a_mark_makes_no_answer_of_a_refusal_and_half_an_answer_is_one(
    home: Path, docs: Path, said: str, abstained: bool
) -> None:
    turn, _ = asked(home, docs, QUESTION, "large", script(synthesis=Draft(response=said)))
    assert turn.abstained == abstained
    assert bool(turn.citations) != abstained


def with_weather(home: Path, docs: Path, size: str, **answers: Any) -> tuple[Turn, ScriptedModel]:
    module = home / "wtool.py"
    module.write_text(TOOLS)
    question = "What is the weather in Paris?"
    return asked(home, docs, question, size, answers, tool_modules=[str(module)])


def test_a_small_model_chooses_among_own_tools(home: Path, docs: Path) -> None:
    said = Draft(response="It is raining in Paris, at 18 degrees [1].")
    choice = ToolChoice(tool="weather", args={"city": "Paris"})
    turn, model = with_weather(home, docs, "small", planner=choice, synthesis=said)
    assert (turn.status, turn.response) == ("answered", said.response)
    assert [result.tool for result in turn.sections.coordinator] == ["weather"]
    assert [citation.source for citation in turn.citations] == ["weather"]
    assert "weather(city: string): The weather in a city right now." in user(model)
    assert "doc.search(" not in user(model)


def test_where_it_chooses_none_rules_search_the_documents(home: Path, docs: Path) -> None:
    module = home / "wtool.py"
    module.write_text(TOOLS)
    answers = {"planner": ToolChoice(), "synthesis": GOOD}
    turn, _ = asked(home, docs, QUESTION, "small", answers, tool_modules=[str(module)])
    assert turn.response == GOOD.response
    assert [result.tool for result in turn.sections.coordinator] == ["doc.search"]


def test_a_tool_that_nobody_can_allow_is_not_offered(home: Path, docs: Path) -> None:
    (home / "unified_flow.toml").write_text('[tools]\ndeny = ["internet.*"]\n')
    _, model = asked(home, docs, QUESTION, "large", script(synthesis=GOOD))
    told = user(model, [call.phase for call in model.calls].index("planner"))
    assert "doc.search(" in told
    assert "internet.research(" not in told
