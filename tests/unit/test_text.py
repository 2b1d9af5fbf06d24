from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unified_flow.lib.blocks import blocks, without_fences
from unified_flow.lib.text import (
    language_of,
    language_of_document,
    query_terms,
    sentences,
    terms,
    words,
)


def spans(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "How are the nodes discovered?", "node discovery: discovering a node"),
        ("sv", "Vilka lavinvarningar utfärdades?", "en lavinvarning utfärdades"),
        ("fr", "Comment les nœuds communiquent-ils ?", "le nœud communique"),
        ("zh", "节点如何通信？", "各个节点之间的通信"),
        ("ja", "ノードの通信とは何ですか", "ノード間の通信について"),
    ],
)
def test_inflected_question_and_passage_share_terms(language: str, one: str, other: str) -> None:
    assert language_of(one) == language
    assert set(terms(one, language)) & set(terms(other, language))


def test_words_that_technical_questions_turn_on_are_no_stop_words() -> None:
    found = terms("Which system test is run in what order on the computer?")
    assert found == ["system", "test", "run", "order", "comput"]


def test_a_stop_word_in_capitals_is_a_term() -> None:
    assert terms("OR in a query, or IN", "en") == ["or", "queri", "in"]
    assert terms("IS NULL", "en") == ["is", "null"]


def test_a_question_in_capitals_has_the_terms_of_one_in_small_letters() -> None:
    assert terms("HOW DO I FIX IT?") == terms("how do I fix it?") == ["fix"]


def test_a_paragraph_in_capitals_has_no_operators() -> None:
    licence = "Fix it.\n\nNO CLAIM OF ANY KIND, EXPRESS OR\nIMPLIED.\n\nUse OR."
    assert terms(licence, "en") == ["fix", "claim", "kind", "express", "impli", "use", "or"]


def test_an_identifier_is_found_by_its_name_and_by_what_it_says() -> None:
    found = terms("get_logger and QoSProfile", "en")
    assert found == ["get_logger", "get", "logger", "qosprofil", "qo", "profil"]


def test_full_width_accents_and_thousands_do_not_matter() -> None:
    assert terms("ＲＯＳ Curaçao 1,000", "en") == terms("ros curacao 1000", "en")


def test_a_question_has_the_terms_of_each_language_and_no_stop_words_of_its_own() -> None:
    assert query_terms("varningar varningar", "sv", "en") == terms("varning", "sv")
    assert query_terms("What is the URL?", "es", "en") == terms("URL", "es")
    assert query_terms("Was ist die URL?", "es", "de") == terms("URL", "es")


def test_what_is_no_running_text_has_the_language_of_the_documents_around_it() -> None:
    assert (
        language_of_document("BSD-3 License\n\n{include} ../en/LICENSE.txt {literal}", "en") == "en"
    )
    assert language_of_document("| Port | 8080 |\n| Host | on |", "de") == "de"
    assert language_of_document("Der Hafen ist in der Nacht nicht offen.", "en") == "de"


@pytest.mark.parametrize(
    "text", ["", " ", "?", "\ud800\udfff", "\x00", "the of and", "___", "\u0301"]
)
def test_nothing_to_find_is_an_empty_list(text: str) -> None:
    assert terms(text) == []


@settings(deadline=None)
@given(st.text())
def test_terms_can_be_stored_and_are_stable(text: str) -> None:
    for term in terms(text):
        term.encode()
        assert term
        assert len(term) <= 64
    assert terms(text) == terms(text)
    language_of(text)
    words(text)


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from(' \n\t.!?。！#*-|`=:>1aA中é(")[]')))
def test_sentences_are_ordered_disjoint_and_trimmed(text: str) -> None:
    last = 0
    for start, end in sentences(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        last = end


@pytest.mark.parametrize("piece", ["a", "e.g. ", ". ", "1.", "Aa_", "\n", "中", "\ud800", "a b. "])
def test_a_long_text_of_anything_is_analysed_in_linear_time(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    started = time.process_time()
    terms(text)
    sentences(text)
    assert time.process_time() - started < 4


def test_terms_from_many_threads_agree() -> None:
    endings = ("s", "ing", "ed", "er", "ers", "ation", "ations", "ness")
    text = " ".join(f"{stem}{end}" for stem in ("walk", "index", "plan") for end in endings)
    expected = terms(text, "it")
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(terms(text, "it"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_abbreviations_initials_and_references_do_not_end_a_sentence() -> None:
    assert spans(
        "Dr. J. K. Smith, e.g. at 5.5 m, agreed.[3] See Fig. 2 there. Bl.a. det, t.ex. is."
    ) == [
        "Dr. J. K. Smith, e.g. at 5.5 m, agreed.[3]",
        "See Fig. 2 there.",
        "Bl.a. det, t.ex. is.",
    ]


def test_headings_lists_tables_and_code_are_kept_apart() -> None:
    text = """# A title
Text that goes on
over two lines. Then more.

- one thing
- another thing

| a | b |
|---|---|
| 1 | 2 |

```python
x = 1. / y
z()
```
Below
=====
End"""
    assert spans(text) == [
        "# A title",
        "Text that goes on\nover two lines.",
        "Then more.",
        "- one thing",
        "- another thing",
        "| a | b |",
        "| 1 | 2 |",
        "x = 1. / y",
        "z()",
        "Below",
        "End",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "```rst\nTitle\n~~~~~\n\nText. More.\n```",
        "````md\n```sh\nls\n```\nMore. Text.\n````",
        "```md\n- one\n\n    ```\n    Text. More.\n```",
    ],
)
def test_a_fence_is_closed_by_one_of_its_own_kind(code: str) -> None:
    found = list(blocks(f"Before.\n{code}\nAfter."))
    assert [each.kind for each in found] == ["text", "code", "text"]
    inner = code.split("\n")[1:-1]
    assert without_fences(code.split("\n")) == inner
    assert spans(code) == [line.strip() for line in inner if line.strip()]


def test_chinese_sentences_need_no_spaces() -> None:
    assert spans("节点是什么？它是一个进程。“好！”他说。")[:2] == ["节点是什么？", "它是一个进程。"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is it about?", "en"),
        ("tf2 buffer size", "en"),
        ("unique constraint multiple columns", "en"),
        ("local store", "en"),
        ("zero time stamp for static_transform_publisher", "en"),
        ("Vad är en nod?", "sv"),
        ("Qu'est-ce qu'un nœud ?", "fr"),
        ("Was ist ein Knoten?", "de"),
        ("¿Qué es un nodo?", "es"),
        ("Hvad er en node?", "da"),
        ("什么是节点", "zh"),
        ("где находится музей?", "ru"),
        ("12345 !!", "en"),
    ],
)
def test_language_of_short_questions(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_line_that_begins_with_a_role_goes_on_with_its_sentence() -> None:
    text = "The frobnicator is started by the\n:class:`ZorkRunner` at noon.\n:field: x"
    start, end = sentences(text)[0]
    assert text[start:end].endswith("`ZorkRunner` at noon.")


def test_an_item_that_goes_on_below_is_one_sentence() -> None:
    text = "#. Open the door\n   with the key.\n#. Go in."
    assert len(sentences(text)) == 2
