"""What is quoted around a sentence: whole lists, whole code, whole sentences, and no more."""

from __future__ import annotations

import pytest

from unified_flow.models.embedded.quotes import around, quotes_for
from unified_flow.turns.passage import Passage

HOWTO = """The oven is heated with wood.

To bake bread:

1. Heat the oven to 250 degrees,
   which takes an hour.
2. Put the loaf in.

Check it like this:
```
bake --loaf rye

bake --check
```
It is done when it sounds hollow."""


def quoted(text: str, sentence: str, most: int = 1_000, *, opens: bool = False) -> str:
    start = text.index(sentence)
    return around(text, start, start + len(sentence), opens=opens, most=most)


def test_a_short_section_is_quoted_whole() -> None:
    assert quoted(HOWTO, "Put the loaf in.") == HOWTO


@pytest.mark.parametrize("rule", ["| --- | --- |", "", "  \n"])
def test_the_rows_of_a_table_stand_together(rule: str) -> None:
    table = f"Loaves:\n\n| Loaf | Hours |\n{rule}\n| rye | 3 |\n| oat | 2 |\n\nSold cold."
    assert "Loaves:\n\n| Loaf | Hours |\n| rye | 3 |\n| oat | 2 |\n\nSold" in quoted(
        table, "Sold cold."
    )


def test_a_list_comes_with_its_lead_in_and_all_its_items() -> None:
    assert quoted(HOWTO, "Put the loaf in.", 120).startswith("To bake bread:\n\n1. Heat the oven")
    assert quoted(HOWTO, "Put the loaf in.", 120).endswith("2. Put the loaf in.")


def test_code_comes_whole_with_the_text_around_it() -> None:
    passage = quoted(HOWTO, "It is done when it sounds hollow.", 110)
    assert passage.startswith("Check it like this:\n```\nbake --loaf rye\n\nbake --check\n```\n")


def test_code_does_not_come_without_what_introduces_it() -> None:
    assert quoted(HOWTO, "It is done when it sounds hollow.", 80) == (
        "It is done when it sounds hollow."
    )


def test_what_introduces_code_that_does_not_fit_is_left_out() -> None:
    code = "bake --check\n" * 40
    text = f"Put the loaf in. Wait a while. Then check:\n```\n{code}```"
    assert quoted(text, "Put the loaf in.", 200) == "Put the loaf in. Wait a while."


def test_of_a_long_paragraph_whole_sentences_are_quoted() -> None:
    text = " ".join(f"Sentence {number} says something of its own." for number in range(60))
    passage = quoted(text, "Sentence 30 says something of its own.", 300)
    assert passage.startswith("Sentence ")
    assert passage.endswith("own.")
    assert "Sentence 30 " in passage
    assert len(passage) <= 300


def test_a_sentence_that_opens_the_answer_comes_first() -> None:
    text = "It stood for years. It was built in 1871. Nobody lives there."
    assert quoted(text, "It was built in 1871.", opens=True).startswith("It was built in 1871.")


@pytest.mark.parametrize("gap", ["\n\n", "\n\n\n\n\n"])
def test_what_markup_left_empty_is_one_blank_line(gap: str) -> None:
    assert quoted(f"One thing.{gap}  - Another.", "One thing.") == "One thing.\n\n  - Another."


def found(text: str) -> Passage:
    return Passage(
        chunk_id="1", path="bread.md", line=1, end_line=9, heading="Loaf", text=text, score=0.8
    )


def test_a_sentence_that_only_says_where_to_read_on_is_no_answer() -> None:
    text = "See the oven page for how to bake a loaf.\n\nA loaf goes in for an hour."
    (quote,) = quotes_for("How do I bake a loaf?", (found(text),))
    assert quote.quote == "A loaf goes in for an hour."


def test_the_only_section_comes_with_its_example() -> None:
    steps = "".join(f"bake --step {number} --until it-is-done\n" for number in range(50))
    text = f"To bake a loaf, call the oven.\n\nThe oven listens. For example:\n\n```\n{steps}```"
    (quote,) = quotes_for("How do I bake a loaf?", (found(text),))
    assert quote.passage == text


def part(
    line: int, text: str, score: float, *, file: str = "ropes", page: int | None = None
) -> Passage:
    return Passage(
        chunk_id=f"{file}{line}",
        path=f"{file}.md",
        line=line,
        end_line=line + 1,
        heading="Ropes > Mending",
        text=f"{text}\nIt takes an hour.",
        score=score,
        page=page,
        continues=line > 4,
    )


@pytest.mark.parametrize(
    ("line", "page", "goes_on"), [(7, None, True), (40, None, False), (7, 4, False)]
)
def test_a_quote_goes_on_where_its_section_does(
    line: int, page: int | None, *, goes_on: bool
) -> None:
    opening = part(4, "A worn rope is mended as follows.", 0.6)
    after = part(line, "Cut the rope and splice both ends.", 0.1, page=page)
    first, *_ = quotes_for("How is a worn rope mended?", (opening, after))
    assert first.source == "ropes.md:4"
    assert ("splice both ends" in first.passage) == goes_on


def test_what_no_search_found_is_quoted_when_all_else_is_refused() -> None:
    passages = (
        part(4, "A worn rope is mended as follows.", 0.6),
        part(7, "Cut the worn rope and splice both ends.", 0.0),
        part(4, "A worn rope is mended with care.", 0.5, file="sails"),
        part(7, "Mend the worn rope of a sail at once.", 0.0, file="sails"),
    )
    question = "How is a worn rope mended?"
    refused = frozenset(each.quote for each in quotes_for(question, passages))
    assert quotes_for(question, passages, refused=refused)


def test_code_that_is_cut_between_two_parts_is_not_lost() -> None:
    code = "\n".join(f"server.add_route('/route/{number}', handler)" for number in range(20))
    opening = part(4, f"A worn rope is mended like this:\n```\n{code}", 0.6)
    after = part(opening.end_line + 1, f"{code}\n```\nA rope that is mended is weaker.", 0.3)
    opening = opening.model_copy(update={"end_line": 4 + opening.text.count("\n")})
    after = after.model_copy(update={"line": opening.end_line + 1, "end_line": 99})
    first, *_ = quotes_for("How is a worn rope mended?", (opening, after))
    assert "route/0" in first.passage


def test_a_part_that_is_quoted_itself_is_not_quoted_twice() -> None:
    opening = part(4, "A worn rope is mended as follows.", 0.6)
    after = part(7, "The worn rope is mended by splicing both ends.", 0.59)
    quotes = quotes_for("How is a worn rope mended?", (opening, after))
    assert sum("splicing" in each.passage for each in quotes) == 1
