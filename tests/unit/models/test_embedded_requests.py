"""What the embedded model takes for a wish to read pages, or to remember something."""

from __future__ import annotations

import pytest

from unified_flow.models.embedded.intents import (
    asked_of_pages,
    asks_of_the_asker,
    asks_what_is_remembered,
    pages_to_read,
)
from unified_flow.tools.builtin.memory_tools import text_to_remember


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
    assert asked_of_pages(query) == asked


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
    assert asks_of_the_asker(query) is of_the_asker


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
    assert asks_what_is_remembered(query) is of_all
