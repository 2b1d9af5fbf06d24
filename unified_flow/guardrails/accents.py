"""Marks on letters that hide a word, as in `spám`, and those that make another word.

No table tells `spám` from a word of some language. What decides instead:

* Letters of an alphabet of their own stay what they are (`año`, `schwül`, `fån`), unless one word
  has marks that no language brings together (`śpåm`).
* Other marks are read through within a word, not at its end, where they tell forms apart (`salé`,
  `râpé`, `papá`), and only if no other word of the message has any: then it is in a language with
  marks. Words that are rules without their marks are no such witnesses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from unified_flow.guardrails.lookalikes import STAND_INS
from unified_flow.guardrails.vocabulary import Vocabulary

_OWN = re.compile("[åäöøüñ]")
_MARKED = re.compile("[\u00df-\u00f6\u00f8-\u024f\u1ea0-\u1eff]")
# Of the languages that have these letters, what else they put on theirs.
_TOGETHER = tuple(
    map(
        frozenset,
        (
            "åäöéàèü",  # Swedish, Finnish
            "åæøéèêóòâôü",  # Danish, Norwegian
            "äöüßéàè",  # German
            "ñáéíóúü",  # Spanish
            "áéíóöőúüű",  # Hungarian
            "áéíóúýöæðþ",  # Icelandic
            "çğıöşüâîû",  # Turkish
            "äõöüšž",  # Estonian
            "áäčďéíľĺňóôŕšťúýž",  # Slovak
            "àâæçéèêëîïôùûüÿœäö",  # French
        ),
    )
)


def marked(words: Iterable[str]) -> list[str]:
    """Those of the words (each once, case-folded) that have a letter beyond a to z, of Latin."""
    return [word for word in set(words) if not word.isascii() and _MARKED.search(word)]


def read(words: list[str], known: Vocabulary) -> dict[str, str]:
    """Of `words`, from `marked`, those that hide a word of the rules, with that word."""
    if not words:
        return {}
    bare = " ".join(words).translate(_plain_letters()).split(" ")
    hides = {word: plain for word, plain in zip(words, bare, strict=True) if plain in known.words}
    alone = len(hides) == len(words)
    return {word: plain for word, plain in hides.items() if _hides(word, alone=alone)}


def _hides(word: str, *, alone: bool) -> bool:
    """Whether the marks of the word are put there to hide it."""
    if _OWN.search(word):
        letters = frozenset(_MARKED.findall(word))
        return not any(letters <= alphabet for alphabet in _TOGETHER)
    return alone and word[-1].isascii()


@cache
def _plain_letters() -> dict[int, int | str | None]:
    """For `str.translate`: small Latin letters without their marks, as in the rules' words."""
    codes = (*range(0xDF, 0x250), *range(0x1EA0, 0x1F00))
    bare = {code: unicodedata.normalize("NFD", chr(code))[0] for code in codes}
    plain = {code: letter for code, letter in bare.items() if letter.isascii()}
    return STAND_INS | {code: letter.translate(STAND_INS) for code, letter in plain.items()}
