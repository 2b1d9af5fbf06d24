from __future__ import annotations

import pytest

from tests.unit.models.calls import call
from unified_flow.errors import PromptTooLargeError
from unified_flow.models import estimate_tokens
from unified_flow.models.prompt import ShownPassage, fitted, prompt
from unified_flow.turns.results import Claim, PriorTurn, ToolResult
from unified_flow.turns.sections import Sections, ToolDescription


def found(name: str, count: int, tokens: int = 100) -> ToolResult:
    claims = [
        Claim(
            claim=f"{name}{rank} ".ljust(4 * tokens, "x"), confidence=0.5, source=f"{name}:{rank}"
        )
        for rank in range(1, count + 1)
    ]
    return ToolResult(tool="doc.search", success=True, claims=claims, result="all of it")


def shown(passages: list[ShownPassage]) -> list[str]:
    return [each.source for each in passages]


def test_what_has_room_stays_as_it_is() -> None:
    sections = Sections(
        coordinator=(found("a", 3),), history=(PriorTurn(turn_id=1, question="q", answer="a"),)
    )
    budgets = {"passages": 1000, "coordinator": 6000, "history": 1000}
    fits, passages, left_out = fitted(sections, budgets, "planner", "What?")
    assert (shown(passages), fits.history) == (["a:1", "a:2", "a:3"], sections.history)
    assert not left_out


def test_the_best_passages_of_each_search_are_kept() -> None:
    sections = Sections(coordinator=(found("a", 4), found("b", 2)))
    _, passages, left_out = fitted(sections, {"passages": 320}, "synthesis", "What?")
    assert shown(passages) == ["a:1", "b:1", "a:2"]
    assert left_out == {"passages": 3}


def test_the_best_passage_stays_whatever_it_takes() -> None:
    sections = Sections(coordinator=(found("a", 2), found("b", 1)))
    _, passages, _ = fitted(sections, {"passages": 10}, "synthesis", "What?")
    assert shown(passages) == ["a:1"]
    assert "all of it" not in prompt(call(sections=sections)).messages[1]["content"]


def test_the_newest_turns_are_kept() -> None:
    history = tuple(PriorTurn(turn_id=n, question="q", answer="x" * 400) for n in range(1, 6))
    fits, _, left_out = fitted(
        Sections(history=history), {"history": 260}, "query_analyzer", "What?"
    )
    assert [turn.turn_id for turn in fits.history] == [4, 5]
    assert left_out == {"history": 3}


def test_history_that_fills_its_budget_is_kept_whole() -> None:
    """Each turn counts: what holds them together does not make a prompt too large."""
    turn = PriorTurn(turn_id=1, question="q", answer="x" * 200)
    history = (turn,) * 4
    room = 4 * estimate_tokens(turn.model_dump_json())
    assert fitted(Sections(history=history), {"history": room}, "planner", "What?")[2] == {}
    _, _, left_out = fitted(Sections(history=history), {"history": room - 1}, "planner", "What?")
    assert left_out == {"history": 1}


def test_the_newest_turn_stays_whatever_it_takes() -> None:
    long = PriorTurn(turn_id=2, question="Tell me all.", answer="word " * 1300)
    history = (PriorTurn(turn_id=1, question="q", answer="a"), long)
    fits, _, _ = fitted(Sections(history=history), {"history": 1500}, "query_analyzer", "What?")
    assert fits.history == (long,)


@pytest.mark.parametrize(
    ("section", "sections"),
    [
        ("tools", Sections(tools=(ToolDescription("t", "d" * 4000, {}),))),
        (
            "coordinator",
            Sections(coordinator=(ToolResult(tool="file.read", success=True, result="y" * 4000),)),
        ),
    ],
)
def test_what_cannot_be_shortened_is_refused(section: str, sections: Sections) -> None:
    with pytest.raises(
        PromptTooLargeError, match=f"section {section} takes about 1,0.. tokens and may take 900"
    ) as caught:
        fitted(sections, {section: 900, "passages": 100}, "planner", "What?")
    assert f"budgets.{section} in the recipe of planner" in str(caught.value.hint)


def test_a_prompt_says_what_it_leaves_out() -> None:
    made = prompt(call(sections=Sections(coordinator=(found("a", 9),)), budgets={"passages": 500}))
    told = made.messages[1]["content"]
    assert told.count("<document") == 4
    assert "(5 passages of lower rank left out)" in told
    assert made.left_out == {"passages": 5}
    assert estimate_tokens(told) < 600


def test_a_passage_that_several_searches_found_is_shown_once() -> None:
    sections = Sections(coordinator=(found("a", 3),) * 800)
    budgets = {"passages": 1000, "coordinator": 20_000}
    _, passages, left_out = fitted(sections, budgets, "planner", "What?")
    assert shown(passages) == ["a:1", "a:2", "a:3"]
    assert not left_out


def test_of_many_tools_those_that_fit_the_question_are_offered() -> None:
    def tool(name: str, says: str) -> ToolDescription:
        return ToolDescription(name, says, {"type": "object", "properties": {}}, own=True)

    many = [tool(f"hub.get_thing_{n}", f"Get thing {n}. " + "It is one. " * 20) for n in range(99)]
    wanted = tool("weather.forecast", "What the weather in a city will be like.")
    search = ToolDescription("doc.search", "Search.", {"type": "object"})
    tools = (search, *many, wanted)
    made = prompt(
        call(
            query="How is the weather in Paris?",
            sections=Sections(tools=tools),
            budgets={"tools": 1000},
        )
    )
    text = made.messages[1]["content"]
    assert "weather.forecast" in text
    assert "doc.search" in text
    left = made.left_out["tools"]
    assert 80 < left < 99
    assert f"({left} tools that fit the question less left out)" in text
