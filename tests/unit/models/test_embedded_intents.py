"""What the embedded model takes a question for: to calculate, call, read or remember."""

from __future__ import annotations

import pytest

from tests.unit.models.test_embedded import Desk, ask
from unified_flow.models.embedded.intents import (
    arithmetic,
    asks_for_memories,
    call_language,
    is_about_user,
    pages_to_read,
    question_about_pages,
    tool_call,
)
from unified_flow.tools.builtin.calculate import CALCULATE
from unified_flow.tools.builtin.memory_tools import text_to_remember
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
        ("1/0", "1/0"),
        ("What is 1/0?", "1/0"),
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


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Remember that I work with ROS 2.", "I work with ROS 2."),
        ("Please remember: tea, no sugar", "tea, no sugar"),
        ("Kom ihåg att jag bor i Oslo", "jag bor i Oslo"),
        ("Souviens-toi que j'habite à Lyon", "j'habite à Lyon"),
        ("Remember that film?", None),
        ("Do you remember that film with the robots", None),
        ("What must a node remember that it has seen", None),
    ],
)
def test_what_is_to_be_remembered(query: str, text: str | None) -> None:
    assert text_to_remember(query) == text


@pytest.mark.parametrize(
    ("query", "urls"),
    [
        ("What does https://a.example/x say about topics?", ["https://a.example/x"]),
        (
            "Read https://a.example/ and http://b.example/y.",
            ["https://a.example/", "http://b.example/y"],
        ),
        ("Sammanfatta https://a.example/x", ["https://a.example/x"]),
        ("What is https://a.example/x used for?", None),
        ("How do I get https://a.example/x to load with httpx?", None),
        ("Why does https://a.example/x say 404 when I open it?", None),
        ("Could you please read https://a.example/x?", ["https://a.example/x"]),
        ("Read a.example and tell me what a topic is", None),
    ],
)
def test_pages_that_are_to_be_read(query: str, urls: list[str] | None) -> None:
    found = pages_to_read(query)
    assert (found and found[0]) == urls
    assert found is None or "http" not in found[1]


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("According to https://a.example/x, what is a service?", "what is a service?"),
        ("Read https://a.example/x and tell me what it costs", "tell me what it costs"),
        ("What does https://a.example/x say about services?", "What services?"),
        ("Summarise https://a.example/x", "Summarise https://a.example/x"),
        ("What is a service?", "What is a service?"),
    ],
)
def test_what_is_asked_of_the_pages(query: str, asked: str) -> None:
    assert question_about_pages(query) == asked


@pytest.mark.parametrize(
    ("query", "of_the_asker"),
    [
        ("Do I use ROS 2 Humble?", True),
        ("What is my editor?", True),
        ("Vilken version har jag?", True),
        ("How do I install ROS 2?", False),
        ("What is a topic?", False),
    ],
)
def test_what_is_asked_about_the_person_who_asks(query: str, of_the_asker: bool) -> None:
    assert is_about_user(query) is of_the_asker


@pytest.mark.parametrize(
    ("query", "of_all"),
    [
        ("What do you know about me?", True),
        ("Do you remember anything about me?", False),
        ("What do you remember of me", True),
        ("Vad vet du om mig?", True),
        ("Que savez-vous de moi ?", True),
        ("你记得我什么？", True),
        ("What do you know about topics?", False),
    ],
)
def test_what_is_asked_of_all_that_is_remembered(query: str, of_all: bool) -> None:
    assert asks_for_memories(query) is of_all
