"""Which language a text is in, judged by script and by its commonest words."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache

import stopwordsiso

from unified_flow.lib.text.lexicon import languages, lexicon_of
from unified_flow.lib.text.segmentation import words

# ISO 639-1 code to the Snowball algorithm, where a list of stop words exists as well.
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip

# Recognised by their commonest words. The rarer ones share too many short words with these
# to be guessed from one question; a caller who knows better names the language.
_GUESSED = ("en", "sv", "fr", "de", "es", "it", "pt", "nl", "da", "no", "fi", "pl", "ro",
            "hu", "cs", "tr", "id", "ca")  # fmt: skip

_BY_SCRIPT = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("ko", re.compile("[\u1100-\u11ff\uac00-\ud7af]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff\u1f00-\u1fff]")),
    ("fa", re.compile("[پچژگ]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("hy", re.compile("[\u0530-\u058f]")),
)

# A capital letter tells a name from a noun everywhere but here.
CAPITAL_NOUNS = frozenset({"de", "lb"})
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
    """Stop word to the languages that have it; a single letter is as often a name in code."""
    found: dict[str, list[str]] = {}
    for language in dict.fromkeys([*_GUESSED, *languages()]):
        for word in filter(lambda word: len(word) > 1, stop_words(language)):
            found.setdefault(word, []).append(language)
    return found


def language_of(text: str, default: str = "en") -> str:
    """ISO 639-1 code; `default` when nothing in the text tells.

    Reads at most the first few thousand characters.
    """
    script, found, _ = _evidence(text[:_SAMPLE])
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


@lru_cache(maxsize=512)
def _evidence(sample: str) -> tuple[str | None, Counter[str], int]:
    """The language that the script tells; how many stop words of each language there are; among how
    many words. Kept, because every phase of a turn asks it of the same question."""
    found: Counter[str] = Counter()
    own = words(sample.casefold())
    known = _languages_of_words()
    for word in own:
        found.update(known.get(word, ()))
    if not sample.isascii():
        letters = sum(character.isalpha() for character in sample)
        for code, pattern in _BY_SCRIPT:
            if len(pattern.findall(sample)) * 5 > letters:
                return code, found, len(own)
    return None, found, len(own)
