"""Whether two words mean the same thing, as far as their letters tell."""

from __future__ import annotations

from functools import cache, lru_cache

from unified_flow.lib.text.lexicon import any_language, lexicon_of
from unified_flow.lib.text.terms import normalised, terms_of_word
from unified_flow.lib.text.words import words

_SHORTEST = 4  # letters of a stem that may be akin to another


def matching_terms(text: str, language: str) -> list[str]:
    """Terms in order, with numerals as digits: "third" and "3rd", "five" and "5" agree."""
    numerals = lexicon_of(language).numerals
    found: list[str] = []
    for word in words(normalised(text)):
        plain = word.lower()
        if plain in numerals:
            found.append(numerals[plain])
        elif plain[0].isdigit() and (number := _ordinal(plain)):
            found.append(number)
        else:
            found += terms_of_word(word, language)
    return found


@cache
def _ordinal_endings() -> tuple[str, ...]:
    return tuple(any_language().ordinal_endings)


def _ordinal(word: str) -> str | None:
    """The digits of "3rd", and of "1990s"."""
    endings = _ordinal_endings()
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


def closest(term: str, others: frozenset[str]) -> float:
    return max((kinship(term, other) for other in others), default=0.0)
