"""The passages that searches found, as sentences with their places in the files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pydantic import ValidationError

from unified_flow.lib.text import sentences, words
from unified_flow.lib.text.lexicon import lexicon_of
from unified_flow.models.embedded.matching import matching_terms
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import ToolResult

SEARCH = "doc.search"
SEARCHES = frozenset({SEARCH, "internet.research"})
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s<>)]+")


@dataclass(frozen=True, eq=False)
class Sentence:
    """`start` and `end` are its place in the passage's text, `number` that among sentences."""

    text: str
    start: int
    end: int
    number: int
    terms: tuple[str, ...]
    known: frozenset[str]  # the terms as a set
    words: tuple[str, ...]  # casefolded
    continues: bool  # opens with a pronoun or the like, and so needs the sentence before it


@dataclass(frozen=True, eq=False)
class Read:
    """A passage with its sentences. Headings are no sentences of it."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    heading: frozenset[str]
    language: str

    def source(self, sentence: Sentence) -> str:
        """`path:line` or `path:page` of where the sentence starts."""
        return self.passage.source(sentence.start)


@lru_cache(maxsize=1_024)
def analysed(text: str, language: str) -> tuple[Sentence, ...]:
    """Kept because a turn reads its passages three times, and questions share passages."""
    continuing = lexicon_of(language).continues
    found: list[Sentence] = []
    for start, end in sentences(text):
        sentence = text[start:end]
        if _is_markup(sentence):
            continue
        # The words of an address are not said by the sentence.
        said = _ADDRESS.sub(" ", sentence)
        terms = matching_terms(said, language)
        found.append(
            Sentence(
                text=sentence,
                start=start,
                end=end,
                number=len(found),
                terms=tuple(terms),
                known=frozenset(terms),
                words=tuple(word.casefold() for word in words(said)),
                continues=bool(found and continuing.match(sentence)),
            )
        )
    return tuple(found)


def _is_markup(sentence: str) -> bool:
    """A heading or a directive: it names what follows and states nothing."""
    return sentence.startswith(("#", ".. "))


def passages_of(results: Iterable[ToolResult]) -> list[Passage]:
    """Every passage of every search, each once, in the order of its best place."""
    places: dict[tuple[str, int, str], tuple[int, Passage]] = {}
    for result in results:
        if result.tool not in SEARCHES or not result.success or not isinstance(result.result, dict):
            continue
        for place, raw in enumerate(result.result.get("passages", ())):
            try:
                passage = Passage.model_validate(raw)
            except ValidationError:
                continue  # a search of another make: what it found is no passage
            key = (passage.path, passage.line, passage.text)
            if key not in places or place < places[key][0]:
                places[key] = (place, passage)
    return [passage for _, passage in sorted(places.values(), key=lambda pair: pair[0])]


def read_passages(passages: Iterable[Passage], language: str) -> list[Read]:
    return [
        Read(
            passage=passage,
            sentences=analysed(passage.text, language),
            heading=frozenset(matching_terms(passage.heading, language)),
            language=language,
        )
        for passage in passages
    ]
