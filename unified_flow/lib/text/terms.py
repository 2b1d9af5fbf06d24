"""Terms: what two texts on one subject have in common, whatever the inflection.

The same function analyses passages when they are indexed and questions when they are asked.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cache, lru_cache
from typing import Any

import snowballstemmer

from unified_flow.lib.text.language import STEMMERS, language_of, stop_words
from unified_flow.lib.text.lexicon import lexicon_of
from unified_flow.lib.text.segmentation import UNSPACED, words

_LONGEST = 64  # characters; a longer "word" is encoded data
_SENTENCE = 4  # words; a shorter text in capitals is a name: "ON DELETE"
_CACHED = 200_000  # words of a language; about 40 MB
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+\Z")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "đ": "d", "ł": "l"})
# Words are written together: a question has compounds that a text writes in parts, or otherwise.
_COMPOUNDING = frozenset({"da", "de", "et", "fi", "hu", "nl", "no", "sv"})
_COMPOUND = 8  # letters of a stem
_stemming = threading.Lock()  # a Snowball stemmer keeps the word it works on in itself


@cache
def _stemmer(language: str) -> Any:
    algorithm = STEMMERS.get(language)
    return snowballstemmer.stemmer(algorithm) if algorithm else None


@cache
def _stop_run(language: str) -> re.Pattern[str] | None:
    """Matches stop words of two characters or more inside a run without spaces."""
    listed = [w for w in stop_words(language) if len(w) > 1 and _UNSPACED_RUN.match(w)]
    return re.compile("|".join(sorted(listed, key=len, reverse=True))) if listed else None


def _folded(word: str) -> str:
    if word.isascii():
        return word
    bare = "".join(
        c
        for c in unicodedata.normalize("NFD", word.translate(_LIGATURES))
        if not unicodedata.combining(c)
    )
    return unicodedata.normalize("NFC", bare)


def _bigrams(run: str, language: str) -> list[str]:
    """Overlapping pairs, the usual stand-in for words in Chinese, Japanese and Thai."""
    stops = _stop_run(language)
    pieces = stops.split(run) if stops else [run]
    return [
        pair
        for piece in pieces
        for pair in ([piece[i : i + 2] for i in range(len(piece) - 1)] or [piece])
        if pair and not (len(pair) == 1 and pair in stop_words(language))
    ]


def _stem(word: str, language: str) -> str:
    stemmer = _stemmer(language)
    if stemmer is None or len(word) > _LONGEST or not word.isalpha():
        return _folded(word[:_LONGEST])
    with _stemming:
        return _folded(stemmer.stemWord(word))


def _analysed(word: str, language: str) -> tuple[str, ...]:
    plain = word.casefold()
    if _UNSPACED_RUN.match(plain):
        return tuple(_bigrams(plain, language))
    if plain in stop_words(language):
        return (plain,) if _is_name(word) else ()
    if plain[0].isdigit():
        return (plain.replace(",", "")[:_LONGEST],)
    parts = [p for piece in word[:_LONGEST].split("_") for p in _CAMEL.split(piece) if p]
    names = [plain.strip("_")]
    if len(parts) > 1:
        # An identifier is found by its name and by what the name says.
        names += [p for part in parts if (p := part.casefold()) not in stop_words(language)]
    return tuple(stem for name in names if (stem := _stem(name, language)))


@cache
def _light_terms(language: str) -> frozenset[str]:
    listed = lexicon_of(language).light_words
    return frozenset(term for word in listed for term in terms(word, language))


def share_in_question(term: str, language: str, *, known: bool) -> float:
    """What a term counts beside one that says what to look for: "give" says little, and a stop word
    in capitals nothing unless it is a name in the documents. Where no document holds it, a pair of
    characters may merely span two words, and a compound has relatives that are written otherwise.

    The last two by trial on half of XQuAD in German and Chinese (`benchmarks/answers.py`).
    """
    if term in _light_terms(language):
        return 0.4
    if known:
        return 1.0
    if term in stop_words(language):
        return 0.0
    if _UNSPACED_RUN.match(term):
        return 0.45
    return 0.5 if language in _COMPOUNDING and len(term) >= _COMPOUND else 1.0


class _Memory(dict[str, tuple[str, ...]]):
    """The terms of every word met so far: a corpus repeats its words, stemming is slow."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _CACHED:
            self.clear()
        found = _analysed(word, self.language)
        if len(word) <= _LONGEST:
            self[word] = found
        return found


@cache
def _memory(language: str) -> _Memory:
    return _Memory(language)


def terms_of_word(word: str, language: str) -> tuple[str, ...]:
    """The terms of one item of `words()`; empty for a stop word."""
    return _memory(language)[word]


def compatible_form(text: str) -> str:
    """The text with one form of each character; a paragraph in capitals in small letters, as no
    word of it stands out."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return "\n\n".join(
        each.lower() if each.isupper() and len(each.split()) >= _SENTENCE else each
        for each in plain.split("\n\n")
    )


def terms(text: str, language: str | None = None) -> list[str]:
    """Stems in order, with repeats, without lower-case stop words; bigrams for unspaced scripts.

    Terms hold letters, digits and underscores only (a decimal number also its point), never
    a lone surrogate, and at most 64 characters. Give every chunk the language of its whole
    document: the guess made for None needs running text.
    """
    memory = _memory(language or language_of(text))
    return [term for word in words(compatible_form(text)) for term in memory[word]]


def query_terms(text: str, language: str, asked_in: str) -> list[str]:
    """The terms of a question, without repeats, as documents in `language` have them.

    No stop word of English, of theirs or of the language it is asked in is one of them, nor what
    comes down to one ("whats") in a list of our own: it would be the rarest. The lists of others
    hold words such as *Jahr*. In capitals it is a name, unless all of the question is in capitals.
    """
    memory = _memory(language)
    stops = _stop_words_of("en", asked_in, language)
    own = words(compatible_form(text))
    is_in_capitals = len(own) > 1 and all(word.isupper() or not word.isalpha() for word in own)
    found = (
        term
        for word in own
        if (is_name := not is_in_capitals and _is_name(word)) or word.casefold() not in stops
        for term in memory[word]
        if is_name or term not in lexicon_of(language).stop_words
    )
    return list(dict.fromkeys(found))


@lru_cache(maxsize=128)
def _stop_words_of(*languages: str) -> frozenset[str]:
    return frozenset[str]().union(*map(stop_words, languages))


def _is_name(word: str) -> bool:
    """Whether capitals make it a word of its own: the operator OR, the abbreviation IT."""
    return len(word) > 1 and word.isupper()
