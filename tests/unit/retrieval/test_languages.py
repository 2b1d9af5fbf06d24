"""Questions in languages without word lists of their own."""

from pathlib import Path

import pytest

from unified_flow.config.tables import DocumentSettings
from unified_flow.lib.text import query_terms, share_in_question
from unified_flow.models.embedded.sentence_ranking import parse_question
from unified_flow.retrieval.collection import statistics
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.turns.passage import Passage


def search(folder: Path, texts: list[str], question: str) -> Passage:
    (folder / "docs").mkdir()
    for number, text in enumerate(texts):
        (folder / "docs" / f"{number}.txt").write_text(text, encoding="utf-8")
    with Index.open(folder / "index") as index:
        index.update([folder / "docs"])
        return index.search(question)[0]


def test_pairs_that_span_two_words_count_little(tmp_path: Path) -> None:
    """Of 货船停泊 only the pair 船停 stands in no document: it is no word."""
    texts = ["货船每天在码头停泊。", "面包由面粉制成。", "蜂蜜来自蜂巢。", "奶酪由牛奶制成。"]
    assert search(tmp_path, texts, "货船停泊").score > 0.25
    assert share_in_question("船停", "zh", known=False) < 1


def test_a_compound_that_no_document_has_counts_less(tmp_path: Path) -> None:
    texts = [
        "Die Gebühr wird am Mittag von dem Hafenmeister der Stadt erhoben.",
        "Das Brot wird aus Mehl und Wasser von dem Bäcker gebacken.",
        "Der Honig wird aus den Waben geschleudert und in Gläser gefüllt.",
        "Der Käse reift in dem Keller und wird in Papier gewickelt.",
    ]
    assert search(tmp_path, texts, "Wird eine Hafengebühr erhoben?").score > 0.2
    german = share_in_question("hafengebuhr", "de", known=False)
    assert german < share_in_question("harbourfee", "en", known=False) == 1


def test_a_german_noun_is_no_name() -> None:
    asked = parse_question("Wie viele Schiffe liegen im Hafen von Visby seit 1998?")
    assert asked.names == {"1998"}
    assert parse_question("How many ships are in the port of Visby?").names == {"visbi"}


def test_a_light_verb_of_the_question_does_not_outweigh_its_subject(tmp_path: Path) -> None:
    texts = [
        "Never give a parcel to a stranger.",
        "A pause of two seconds lies between letters. Letters are sorted.",
        "Letters are weighed, and a pause is no fault.",
        "A pause for tea is at noon.",
        "Letters go by train, and letters come by ship.",
    ]
    (tmp_path / "docs").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "docs" / f"{number}.txt").write_text(text, encoding="utf-8")
    with Index.open(tmp_path / "index") as index:
        index.update([tmp_path / "docs"])
        found = index.search("How to give a pause?")
    assert "pause" in found[0].text


def test_a_file_in_another_language_does_not_make_stop_words_rare(tmp_path: Path) -> None:
    english = [
        "The turbine is started with the key, and it is stopped with the lever.",
        "The test of the turbine is done by the chief engineer in the morning.",
        "The oil of the engine is changed when the ship is in the port.",
    ]
    spanish = "El libro es de la casa y los niños lo leen: the what is how do I. Es de los niños."
    assert "engineer" in search(tmp_path, [spanish, *english], "How do I test the turbine?").text


SPANISH = "El puerto está en la bahía y los barcos salen de él por la mañana, según el capitán.\n"
LISTING = (
    "deprecating FrobnicatorClass\nreleases/{0}.txt\nZorkHandler deprecated frobnication {0}\n"
)


def test_the_first_file_does_not_decide_the_language_of_the_others(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "a.txt").write_text(SPANISH * 3, encoding="utf-8")
    for number in range(30):
        (docs / f"list{number:02}.txt").write_text(LISTING.format(number))
        (docs / f"text{number:02}.txt").write_text(
            f"The valve {number} is opened by the engineer when the pressure is too high for it.\n"
        )
    with Index.open(tmp_path / "index") as index:
        index.update([docs])
        assert statistics(index).languages == {"en": 60, "es": 1}
        assert index.search("deprecate")
        assert index.search("los capitanes")[0].path == "docs/a.txt"


def test_a_language_can_be_set(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "list.txt").write_text("Lavinvarningar, Uppsala\nBygglov, Visby\n", encoding="utf-8")
    (docs / "text.txt").write_text("The valve is opened by the engineer when it is too hot.\n")
    with Index.open(tmp_path / "index") as index:
        index.update([docs])
        assert statistics(index).languages == {"en": 2}
        index.update([docs], UpdateOptions(reading=DocumentSettings(language="sv")))
        assert statistics(index).languages == {"en": 1, "sv": 1}
        assert index.search("lavinvarning")[0].path == "docs/list.txt"


@pytest.mark.parametrize(
    "question",
    ["what is a turbine", "WHAT IS A TURBINE?", "whats a turbine"],
)
def test_stop_words_never_carry_weight(index: Index, shelf: Path, question: str) -> None:
    """However they are written, and however rare they are in the documents."""
    (shelf / "what.md").write_text("# WHAT IT IS\n\nIT IS WHAT IT IS.\n")
    (shelf / "parts.md").write_text("# Turbine\n\nA part of a pump.\n")
    index.update([shelf])
    best = index.search(question)[0]
    assert best.path == "shelf/parts.md"
    assert best.score > 0.9


@pytest.mark.parametrize("question", ["WHAT IS IT?", "whats it", "ARE WE THERE, OR IS IT ME"])
def test_a_question_of_stop_words_finds_nothing(index: Index, shelf: Path, question: str) -> None:
    (shelf / "what.md").write_text("# WHAT IT IS\n\nIT IS WHAT IT IS.\n")
    index.update([shelf])
    assert index.search(question) == []


def test_a_stop_word_in_capitals_is_a_name(index: Index, shelf: Path) -> None:
    (shelf / "who.md").write_text("# Health\n\nThe WHO has its seat in Geneva.\n")
    (shelf / "other.md").write_text("# Seats\n\nThe seat of the office is in Visby.\n")
    index.update([shelf])
    assert index.search("Where is the seat of the WHO?")[0].path == "shelf/who.md"
    (unnamed,) = index.search("What seat has the IT in Geneva?", limit=1)
    assert unnamed.score == index.search("seat in Geneva")[0].score, "no document names an IT"


def test_a_stem_is_compared_with_no_stop_word_of_another_language() -> None:
    assert query_terms("Welche Themen ändern sich?", "de", "de") == ["them", "and"]
    assert share_in_question("them", "de", known=False) == 1.0


def test_a_name_in_a_question_without_capitals_is_one() -> None:
    assert "it" in query_terms("哪所大学获得了大多数IT组织的赞誉？", "zh", "zh")


@pytest.mark.parametrize(("others", "languages"), [(19, ("en", "de")), (20, ("en",))])
def test_a_language_of_few_documents_is_none_of_theirs(
    others: int, languages: tuple[str, ...], tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "de.txt").write_text(
        "Die Gebühr wird am Mittag von dem Hafenmeister der Stadt erhoben."
    )
    for number in range(others):
        (docs / f"{number}.txt").write_text(f"The ship of the line {number} leaves at noon.")
    with Index.open(tmp_path / "index") as index:
        index.update([docs])
        with index.reading() as reader:
            assert reader.main_languages == languages
