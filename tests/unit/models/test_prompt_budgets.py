from __future__ import annotations

import pytest

from tests.unit.models.calls import call
from unified_flow.errors import PromptTooLargeError
from unified_flow.models import estimate_tokens
from unified_flow.models.prompt import fitted, prompt
from unified_flow.turns.results import Claim, Evidence, PriorTurn, ToolResult
from unified_flow.turns.sections import Sections, ToolDescription


def found(name: str, count: int, tokens: int = 100) -> ToolResult:
    claims = [
        Claim(
            claim=f"{name}{rank} ".ljust(4 * tokens, "x"), confidence=0.5, source=f"{name}:{rank}"
        )
        for rank in range(1, count + 1)
    ]
    return ToolResult(tool="doc.search", success=True, claims=claims, result="all of it")


def shown(sections: Sections) -> list[list[str]]:
    return [[claim.source for claim in result.claims] for result in sections.coordinator]


def test_what_has_room_stays_as_it_is() -> None:
    sections = Sections(
        coordinator=(found("a", 3),), history=(PriorTurn(turn_id=1, question="q", answer="a"),)
    )
    budgets = {"passages": 1000, "coordinator": 6000, "history": 1000}
    fits, left_out = fitted(sections, budgets, "planner")
    assert (shown(fits), fits.history) == (shown(sections), sections.history)
    assert not left_out


def test_the_best_passages_of_each_search_are_kept() -> None:
    sections = Sections(coordinator=(found("a", 4), found("b", 2)))
    fits, left_out = fitted(sections, {"passages": 320}, "synthesis")
    assert shown(fits) == [["a:1", "a:2"], ["b:1"]]
    assert left_out == {"passages": 3}


def test_the_best_passage_stays_whatever_it_takes() -> None:
    fits, _ = fitted(
        Sections(coordinator=(found("a", 2), found("b", 1))), {"passages": 10}, "synthesis"
    )
    assert shown(fits) == [["a:1"]]
    assert "all of it" not in prompt(call(sections=fits)).messages[1]["content"]


def test_the_newest_turns_are_kept() -> None:
    history = tuple(PriorTurn(turn_id=n, question="q", answer="x" * 400) for n in range(1, 6))
    fits, left_out = fitted(Sections(history=history), {"history": 260}, "query_analyzer")
    assert [turn.turn_id for turn in fits.history] == [4, 5]
    assert left_out == {"history": 3}


def test_history_that_fills_its_budget_is_kept_whole() -> None:
    """Each turn counts: what holds them together does not make a prompt too large."""
    turn = PriorTurn(turn_id=1, question="q", answer="x" * 200)
    history = (turn,) * 4
    room = 4 * estimate_tokens(turn.model_dump_json())
    assert fitted(Sections(history=history), {"history": room}, "planner")[1] == {}
    _, left_out = fitted(Sections(history=history), {"history": room - 1}, "planner")
    assert left_out == {"history": 1}


def test_the_newest_turn_stays_whatever_it_takes() -> None:
    long = PriorTurn(turn_id=2, question="Tell me all.", answer="word " * 1300)
    history = (PriorTurn(turn_id=1, question="q", answer="a"), long)
    fits, _ = fitted(Sections(history=history), {"history": 1500}, "query_analyzer")
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
        fitted(sections, {section: 900, "passages": 100}, "planner")
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
    fits, left_out = fitted(sections, {"passages": 1000, "coordinator": 1000}, "planner")
    assert shown(fits) == [["a:1", "a:2", "a:3"]]
    assert not left_out


def test_evidence_is_counted_in_place_of_what_it_stands_for() -> None:
    sections = Sections(coordinator=(found("a", 90),), evidence=Evidence(likely=0.9))
    assert not fitted(sections, {"coordinator": 900}, "synthesis")[0].coordinator
