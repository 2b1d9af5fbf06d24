"""What the embedded model calls besides search: a calculation, and a tool that is named."""

from __future__ import annotations

import pytest

from tests.unit.models.test_embedded import Desk, ask
from unified_flow.models.embedded.arithmetic import arithmetic
from unified_flow.models.embedded.intents import call_language, tool_call
from unified_flow.tools.builtin.calculate import CALCULATE
from unified_flow.tools.functions import from_function
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.sections import Sections, ToolDescription


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("what is 17% of 2300", "2300 * 17 / 100"),
        ("What's 17 percent of 2,300?", "2300 * 17 / 100"),
        ("vad är 17 % av 2300?", "2300 * 17 / 100"),
        ("12*(3+4)", "12*(3+4)"),
        ("What is 12 * (3 + 4)?", "12 * (3 + 4)"),
        ("12 × 4 =", "12 * 4"),
        ("what is 3 times 4 minus 1?", "3 * 4 - 1"),
        ("combien font 3 fois 4 ?", "3 * 4"),
        ("Please calculate: sqrt(2) ^ 2", "sqrt(2) ** 2"),
        ("1,234.5 + 2", "1234.5 + 2"),
        ("max(1, 2)", "max(1, 2)"),
        ("calculate 24/7", "24/7"),
    ],
)
def test_a_plain_calculation_is_recognised(question: str, expression: str) -> None:
    assert arithmetic(question) == expression


@pytest.mark.parametrize(
    "question",
    [
        "What is a topic?",
        "1999-2001",
        "What happened 1999-2001?",
        "2024-01-02",
        "what is 24/7?",
        "What is 802.11?",
        "What is 3D printing?",
        "12 angry men",
        "who is 50 cent?",
        "what is 1 + x",
        "what is 17% of it",
        "2300",
        "(1).__class__",
        "what is " + "1+" * 600 + "1",
    ],
)
def test_a_question_with_numbers_in_it_is_a_question(question: str) -> None:
    assert arithmetic(question) is None


def add(a: int, b: int = 1) -> int:
    return a + b


def say(text: str) -> str:
    return text


@pytest.fixture(scope="module")
def box() -> Toolbox:
    return Toolbox([CALCULATE, from_function(add), from_function(say)])


@pytest.mark.parametrize(
    ("question", "args"),
    [
        ("use add a=2 b=3", {"a": 2, "b": 3}),
        ('call add with {"a": 2}', {"a": 2}),
        ("Run the tool say text='12 red apples'.", {"text": "12 red apples"}),
        ("kör say text=12", {"text": "12"}),
    ],
)
def test_a_tool_that_is_named_is_called(
    box: Toolbox, question: str, args: dict[str, object]
) -> None:
    request = tool_call(question, box.describe())
    assert request is not None
    assert request.args == args


@pytest.mark.parametrize(
    "question",
    ["use of force", "use add for what?", "run tests", "what does add a=2 do?", "call me later"],
)
def test_a_question_about_a_tool_is_a_question(box: Toolbox, question: str) -> None:
    described: tuple[ToolDescription, ...] = box.describe()
    assert tool_call(question, described) is None


def response(sections: Sections) -> str:
    assert sections.synthesis is not None
    assert sections.validation is not None
    assert sections.validation.decision == "APPROVE", sections.validation
    assert sections.synthesis.citations
    return sections.synthesis.response


def test_a_calculation_is_answered_and_approved(box: Toolbox) -> None:
    assert response(ask(Desk(box), "What is 17% of 2300?")) == "2300 * 17 / 100 = 391"
    assert response(ask(Desk(box), "12*(3+4)")) == "12*(3+4) = 84"
    both = response(ask(Desk(box), "What is 2+2 and what is 3+3?"))
    assert "2+2 = 4" in both
    assert "3+3 = 6" in both


def test_what_a_tool_says_is_the_answer(box: Toolbox) -> None:
    said = response(ask(Desk(box), "use say text='Anyone may call it.'"))
    assert said == "From say:\nAnyone may call it."
    said = response(ask(Desk(box), 'use say {"text": "{\\"a\\": 1}"}'))
    assert said.endswith('{"a": 1}')


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("use bad.echo t=hi", "en"),
        ("använd bad.echo t=hi", "sv"),
        ("utilisez bad.image", "fr"),
        ("use topics for streams", None),
        ("What is a topic?", None),
    ],
)
def test_the_language_of_a_call_is_that_of_its_verb(question: str, language: str | None) -> None:
    assert call_language(question) == language
