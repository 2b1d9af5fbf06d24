"""A search that knows what was talked about: follow-ups lean on it, a new subject does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from unified_flow.lib.text.conversation import conversation_words, heed
from unified_flow.retrieval.index import Index

DOCUMENTS = {
    "bread": "Bread dough rests for twelve hours. Store bread in linen, away from the sun.",
    "cheese": "Cheese is made of milk and rennet. Whoever wants to keep it for long should store "
    "it in waxed paper, in the cellar.",
    "honey": "Honey is spun out of the combs. Store honey in jars with a lid, in the dark.",
    "harbour": "Ships moor at the northern quay. The harbour master collects the fee at noon.",
}
ABOUT_CHEESE = [("What is cheese made of?", "Of milk and rennet. Cheese is a dairy product.")]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    with Index.open(tmp_path / "index") as opened:
        opened.update([folder])
        yield opened


def first(index: Index, question: str, turns: list[tuple[str, str]]) -> str:
    return index.search(question, 3, conversation_words(turns))[0].heading


def test_a_follow_up_finds_what_was_talked_about(index: Index) -> None:
    assert first(index, "How should I store that?", []) != "Cheese"
    assert first(index, "How should I store that?", ABOUT_CHEESE) == "Cheese"


def test_a_change_of_subject_is_not_held_to_the_old_one(index: Index) -> None:
    question = "Where do ships moor?"
    assert first(index, question, ABOUT_CHEESE) == "Harbour"
    plain, after = index.search(question), index.search(question, 8, {"cheese": 0.35})
    assert [p.score for p in after] == [p.score for p in plain]


def test_a_question_that_names_its_subject_keeps_it(index: Index) -> None:
    assert first(index, "How should I store honey in jars?", ABOUT_CHEESE) == "Honey"


def test_what_was_said_lately_weighs_most() -> None:
    turns = [(f"What about the {name}?", "It is fine.") for name in ("tea", "oats", "rye", "ale")]
    words = conversation_words([("Where is the well?", "Behind it."), *turns])
    assert sorted(words, key=lambda word: -words[word])[:4] == ["ale", "rye", "oats", "tea"]
    assert "well" not in words  # five turns ago
    assert words["ale"] < 0.5  # a word of the question counts 1
    assert conversation_words([]) == {}


def test_names_of_the_last_answer_count() -> None:
    words = conversation_words([("Who rules?", "The council of Visby rules, with the bishop.")])
    assert words["visby"] == 0.1 < words["rules"]


def test_how_much_is_heeded() -> None:
    assert heed([0.5, 0.5], [0.4, 0.0]) == 1.0  # nothing is clear, and all is on the subject
    assert heed([0.5, 0.0], [0.4]) == 0.0  # a clear winner
    assert heed([0.5, 0.5], [0.0, 0.0]) == 0.0  # nothing found speaks of it
    assert heed([], []) == 1.0  # nothing found at all
