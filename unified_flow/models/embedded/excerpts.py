"""What searches found, as sentences with their places in the files and terms to compare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from unified_flow.config.tool_names import SEARCHES
from unified_flow.lib.blocks import blocks
from unified_flow.lib.text import language_of, sentences, words
from unified_flow.lib.text.lexicon import any_language, lexicon_of
from unified_flow.lib.text.terms import compatible_form, terms_of_word
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import ToolResult

_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s<>)]+")
_SIGNATURE = re.compile(r"(?=.*[._(])[A-Za-z_][\w.]*(?:\([^()]*\))?:?\Z", re.ASCII | re.DOTALL)
_TABLE_HEAD = re.compile(r"(?<!\|\n)^([ \t]*\|.*\|)[ \t]*\n[ \t|:-]*\n[ \t]*\|", re.MULTILINE)
_SHORTEST = 4  # letters of a stem that may be akin to another


@dataclass(frozen=True, eq=False)
class Sentence:
    """`start` and `end` are its place in the passage's text, `number` that among sentences."""

    text: str
    start: int
    end: int
    number: int
    terms: frozenset[str]
    words: tuple[str, ...]  # casefolded
    continues: bool  # opens with a pronoun or the like, and so needs the sentence before it
    states_nothing: bool  # code, a lone signature, a table's head, "See …"


@dataclass(frozen=True, eq=False)
class Excerpt:
    """A passage with its sentences. Headings are no sentences of it."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    heading: frozenset[str]  # terms of all headings above it
    headings: tuple[frozenset[str], ...]  # of each of them
    language: str

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of its sentences and of its headings."""
        return self.heading.union(*(sentence.terms for sentence in self.sentences))

    @property
    def states_nothing(self) -> bool:
        return all(sentence.states_nothing for sentence in self.sentences)


@lru_cache(maxsize=1_024)
def sentences_of(text: str, language: str) -> tuple[Sentence, ...]:
    """Kept because a turn reads its passages three times, and questions share passages."""
    lexicon = lexicon_of(language)
    silent = [(block.start, block.end) for block in blocks(text) if block.kind == "code"]
    silent += [match.span(1) for match in _TABLE_HEAD.finditer(text)]
    found: list[Sentence] = []
    for start, end in sentences(text):
        sentence = text[start:end]
        if sentence.startswith(("#", ".. ")):
            continue  # a heading or a directive names what follows and states nothing
        # The words of an address are no words of the sentence.
        prose = _ADDRESS.sub(" ", sentence)
        found.append(
            Sentence(
                text=sentence,
                start=start,
                end=end,
                number=len(found),
                terms=frozenset(matching_terms(prose, language)),
                words=tuple(word.casefold() for word in words(prose)),
                continues=bool(found and lexicon.continues.match(sentence)),
                states_nothing=any(begin <= start < stop for begin, stop in silent)
                or (_SIGNATURE.match(sentence) or lexicon.refers.match(sentence)) is not None,
            )
        )
    return tuple(found)


def found_passages(results: Iterable[ToolResult]) -> tuple[Passage, ...]:
    """Every passage of every search, each once, in the order of its best place."""
    places: dict[tuple[str, int, str], tuple[int, Passage]] = {}
    for result in results:
        if result.tool not in SEARCHES or not result.success:
            continue
        for place, passage in enumerate(result.passages):
            key = (passage.path, passage.line, passage.text)
            if key not in places or place < places[key][0]:
                places[key] = (place, passage)
    return tuple(passage for _, passage in sorted(places.values(), key=lambda pair: pair[0]))


def language_of_passages(passages: Sequence[Passage]) -> str:
    """One language for all: a question is stemmed once, and a table has no words to tell by."""
    return language_of(" ".join(passage.text[:1_000] for passage in passages[:3]))


def excerpts_of(passages: Iterable[Passage], language: str) -> list[Excerpt]:
    return [
        Excerpt(
            passage=passage,
            sentences=sentences_of(passage.text, language),
            heading=term_set(passage.heading, language),
            headings=tuple(term_set(each, language) for each in passage.heading.split(" > ")),
            language=language,
        )
        for passage in passages
    ]


def matching_terms(text: str, language: str) -> list[str]:
    """Terms in order, with numerals as digits: "third" and "3rd", "five" and "5" agree."""
    own = words(compatible_form(text))
    return [term for word in own for term in _matching_terms_of(word, language)]


@lru_cache(maxsize=512)
def term_set(text: str, language: str) -> frozenset[str]:
    """Kept for headings, quotes and the question, which a turn compares again and again."""
    return frozenset(matching_terms(text, language))


@lru_cache(maxsize=10_000)
def _matching_terms_of(word: str, language: str) -> tuple[str, ...]:
    """Kept because the question, its passages and the draft share their words."""
    plain = word.lower()
    if number := lexicon_of(language).numerals.get(plain) or _ordinal(plain):
        return (number,)
    return terms_of_word(word, language)


def _ordinal(word: str) -> str | None:
    """The digits of "3rd", and of "1990s"."""
    endings = tuple(any_language().ordinal_endings)
    digits = word.rstrip("".join(endings))
    return digits if word.endswith(endings) and digits.isdigit() else None


@lru_cache(maxsize=100_000)
def kinship(one: str, other: str) -> float:
    """0..1: the share of a common beginning, for derivations that stemming keeps apart."""
    if len(one) < _SHORTEST or len(other) < _SHORTEST or one[:2] != other[:2]:
        return 0.0
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    share = shared / max(len(one), len(other))
    return share if shared >= _SHORTEST and share >= 0.5 else 0.0


def best_kinship(term: str, others: frozenset[str]) -> float:
    return max((kinship(term, other) for other in others), default=0.0)
