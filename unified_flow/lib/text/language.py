"""Which language a text is in, judged by script and by its commonest words."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path

import stopwordsiso

from unified_flow.lib.text.lexicon import languages, lexicon_of
from unified_flow.lib.text.segmentation import words

_KNOWN = tomllib.loads(Path(__file__).with_name("scripts.toml").read_text(encoding="utf-8"))
STEMMERS: dict[str, str] = _KNOWN["stemmers"]
CAPITAL_NOUNS = frozenset[str](_KNOWN["capital_nouns"])
_SHARED_WITH_ENGLISH = frozenset(_KNOWN["shared_with_english"].split())
_BY_SCRIPT = {code: re.compile(pattern) for code, pattern in _KNOWN["scripts"].items()}
_SAMPLE = 2_000  # characters; more does not change the guess
# Words for each stop word that running text has at most: a list of links or a licence has more.
_RUNNING = 6


@cache
def stop_words(language: str) -> frozenset[str]:
    """Words that carry no subject matter; empty for a language without a list."""
    if own := lexicon_of(language).stop_words:
        return own
    if not stopwordsiso.has_lang(language):
        return frozenset()
    listed = {word.casefold() for word in stopwordsiso.stopwords(language)}
    # The lists hold elisions whole ("aujourd'hui", "celui-ci"); words() divides them.
    return frozenset(listed | {part for word in listed for part in words(word)})


@cache
def _languages_of_words() -> dict[str, list[str]]:
    """Stop word to the languages that have it, without those that English shares; a single letter
    is as often a name in code."""
    found: dict[str, list[str]] = {}
    for language in dict.fromkeys([*_KNOWN["guessed"], *languages()]):
        for word in stop_words(language) - _SHARED_WITH_ENGLISH:
            if len(word) > 1:
                found.setdefault(word, []).append(language)
    return found


def language_of(text: str, default: str = "en") -> str:
    """ISO 639-1 code; `default` when nothing in the text shows it.

    Reads at most the first few thousand characters.
    """
    return _language_of(text[:_SAMPLE], default)


@lru_cache(maxsize=512)
def _language_of(sample: str, default: str) -> str:
    """Kept, because every phase of a turn asks it of the same question."""
    script, found, _ = _evidence(sample)
    return script or _commonest(found, default)


def language_of_document(text: str, default: str) -> str:
    """The same of a whole document: `default` unless it is running text that is clearly in another.
    The few common words of a table, a listing or a page of links are chance."""
    script, found, length = _evidence(text[:_SAMPLE])
    best = _commonest(found, default)
    is_clear = found[best] >= max(length / _RUNNING, 2 * (found[default] + 1))
    return script or (best if is_clear else default)


def _commonest(found: Counter[str], default: str) -> str:
    return max(found, key=lambda code: (found[code], code == default), default=default)


def _evidence(sample: str) -> tuple[str | None, Counter[str], int]:
    """The language that the script shows; how many stop words of each language there are; among how
    many words."""
    own = words(sample.casefold())
    known = _languages_of_words()
    found = Counter(language for word in own for language in known.get(word, ()))
    if not sample.isascii():
        letters = sum(character.isalpha() for character in sample)
        for code, pattern in _BY_SCRIPT.items():
            if len(pattern.findall(sample)) * 5 > letters:
                return code, found, len(own)
    return None, found, len(own)
