"""Question sets of every form, and what is drawn from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unified_flow.errors import InputError
from unified_flow.evaluation.datasets import Dataset, Group, corpus_of, draw, read_dataset

ARTICLES = [
    {
        "title": f"Article {number}",
        "paragraphs": [
            {
                "context": f"The harbour number {number} was built in {1900 + number}.",
                "qas": [
                    {
                        "id": f"q{number}",
                        "question": f"When was harbour {number} built?",
                        "answers": [{"text": str(1900 + number), "answer_start": 1}] * 2,
                    }
                ],
            }
        ],
    }
    for number in range(10)
]


def squad(folder: Path, *more: dict[str, Any]) -> Path:
    path = folder / "harbours.v1.json"
    path.write_text(json.dumps({"version": "1.1", "data": [*ARTICLES, *more]}))
    return path


def jsonl(folder: Path, *lines: object) -> Path:
    path = folder / "own.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_squad_brings_its_paragraphs_as_documents(tmp_path: Path) -> None:
    found = read_dataset(squad(tmp_path))
    assert (len(found.questions), len(found.groups)) == (10, 10)
    assert found.questions[3].answers == ("1903",)
    assert found.groups[3].texts == ("The harbour number 3 was built in 1903.",)
    assert found.questions[3].group == found.groups[3].name


def test_squad_2_marks_what_has_no_answer(tmp_path: Path) -> None:
    absent = {"id": "none", "question": "Who?", "answers": [], "is_impossible": True}
    article = {"title": "T", "paragraphs": [{"context": "Nothing.", "qas": [absent]}]}
    assert read_dataset(squad(tmp_path, article)).questions[-1].unanswerable


def test_jsonl_names_its_documents_beside_itself(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        {"question": "Who?", "answer": "Ada", "docs": ["a.md"]},
        "",
        {"id": 7, "question": "When?", "answers": ["1999", "in 1999"]},
        {"question": "Why?", "unanswerable": True},
    )
    found = read_dataset(path)
    assert [q.id for q in found.questions] == ["1", "7", "4"]
    assert [q.answers for q in found.questions] == [("Ada",), ("1999", "in 1999"), ()]
    assert found.groups[0].paths == (tmp_path / "a.md",)


def test_a_larger_sample_of_one_seed_holds_the_smaller(tmp_path: Path) -> None:
    found = read_dataset(squad(tmp_path))
    small = draw(found, 3, 1, 0.0)
    assert small == draw(found, 3, 1, 0.0) == draw(found, 6, 1, 0.0)[:3]
    assert small != draw(found, 3, 2, 0.0)


def test_as_many_more_are_asked_without_their_documents(tmp_path: Path) -> None:
    drawn = draw(read_dataset(squad(tmp_path)), 5, 1, 0.4)
    absent = [question for question in drawn if question.left_out]
    assert (len(drawn), len(absent)) == (7, 2)
    assert all(q.unanswerable and q.id.endswith(":without") for q in absent)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"question": "Who?"}', "own.jsonl:1: neither an answer nor unanswerable"),
        ('{"question": "Who?", "anser": "x"}', "own.jsonl:1: anser: extra inputs"),
        ("{", "own.jsonl:1: JSON: invalid json"),
        ("", "holds no questions"),
        ('{"question": "Who?", "answer": ""}', "own.jsonl:1: answer: is empty"),
        ('{"question": "Who?", "answers": ["Ada", " "]}', "own.jsonl:1: answers.1: is empty"),
        ('{"id": 1, "question": "a", "answer": "b"}\n' * 2, "two questions have the id 1"),
    ],
)
def test_a_mistake_in_a_line_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_dataset(jsonl(tmp_path, text))


def test_what_is_no_question_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1]")
    with pytest.raises(InputError, match="not of SQuAD form"):
        read_dataset(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_dataset(tmp_path / "absent.json")


ASKED = {"id": "q", "question": "Who?", "answers": [{"text": "Ada"}]}


@pytest.mark.parametrize(
    ("paragraph", "said"),
    [
        ({"context": 5, "qas": [ASKED]}, "context: input should be a valid string"),
        ({"context": "C", "qas": [ASKED | {"question": ["Who?"]}]}, "qas.0.question"),
        ({"context": "C", "qas": [ASKED | {"answers": [{"text": ""}]}]}, "text: is empty"),
        ({"context": "C", "qas": [ASKED | {"answers": [{"text": 1931}]}]}, "answers.0.text"),
        ({"context": "C", "qas": {}}, "qas: input should be a valid array"),
    ],
)
def test_a_set_with_other_types_is_refused(
    tmp_path: Path, paragraph: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read_dataset(squad(tmp_path, {"title": "T", "paragraphs": [paragraph]}))


def test_documents_that_cannot_be_written_leave_nothing_behind(tmp_path: Path) -> None:
    broken = Dataset("set", "0" * 64, (), (Group("a", ("fine", "half a letter: \ud800")),))
    with pytest.raises(UnicodeEncodeError):
        corpus_of(broken, tmp_path / "corpora")
    assert not (tmp_path / "corpora").exists()


def test_what_somebody_who_was_killed_left_half_built_is_completed(tmp_path: Path) -> None:
    half = tmp_path / "corpora" / ("0" * 12) / "a" / "0000.txt"
    half.parent.mkdir(parents=True)
    half.write_text("ha")
    texts = Dataset("set", "0" * 64, (), (Group("a", ("half", "fine")),))
    assert corpus_of(texts, tmp_path / "corpora") == {"a": [half.parent]}
    written = sorted(half.parent.iterdir())
    assert [each.read_text() for each in written] == ["half\n", "fine\n"]
    half.write_text("as it is\n")
    corpus_of(texts, tmp_path / "corpora")
    assert half.read_text() == "as it is\n"


def test_documents_that_are_not_known_cannot_be_left_out(tmp_path: Path) -> None:
    found = read_dataset(jsonl(tmp_path, {"question": "Who?", "answer": "Ada"}))
    with pytest.raises(InputError, match="can be left out"):
        draw(found, None, 1, 1.0)
