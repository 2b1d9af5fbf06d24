"""Which characters stand for which letters: tables from Unicode's data, built on first use.

`unusual_letters` holds letters that no common orthography uses (IPA, small capitals, letters in
squares, uncommon marks); reading them as plain letters changes no real word. `foreign_letters`
holds letters of other scripts that look like Latin ones (Unicode UTS 39, confusables), which are
real letters too: `evasion.py` decides which of them are meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

_UNUSUAL_RANGES = (
    (0x0180, 0x02AF),  # Latin Extended-B, IPA
    (0x1D00, 0x1DBF),  # phonetic extensions: small capitals
    (0x1E00, 0x1E9D),  # Latin Extended Additional, but for Vietnamese
    (0x2C60, 0x2C7F),
    (0xA720, 0xA7FF),
    (0xAB30, 0xAB6F),
)
_IN_USE = frozenset("ơưșțǆǉǌ")  # Vietnamese, Romanian, Croatian
_NAMED = re.compile(
    r"LATIN (?:LETTER SMALL CAPITAL|SMALL LETTER(?: SCRIPT)?|CAPITAL LETTER)"
    r" ([A-Z]|ALPHA)(?: WITH .+)?"
)
# The blocks of those scripts.
_SCRIPT = re.compile(
    "[\u0370-\u058f\u10a0-\u10ff\u13a0-\u13ff\u1c80-\u1cbf\u1f00-\u1fff\u2c80-\u2cff"
    "\u2d00-\u2d2f\u2de0-\u2dff\ua4d0-\ua4ff\ua640-\ua69f\uab70-\uabbf]"
)
_LATIN = re.compile("[A-Za-z]")
# Alphabets that Unicode keeps as symbols and NFKC leaves alone: white on black, in a circle.
_SYMBOLS = (0x1F150, 0x1F170)
# Alike to any reader, yet left out of UTS 39 because a careful one sees the difference.
_ALIKE_TOO = dict(zip("квмнптκτωηβ", "kbmhntktwnb", strict=True))
_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN")


@cache
def unusual_letters() -> dict[int, str]:
    """For `str.translate`, of case-folded text."""
    table: dict[int, str] = {}
    for first, last in _UNUSUAL_RANGES:
        for code in range(first, last + 1):
            letter = chr(code)
            named = _NAMED.fullmatch(unicodedata.name(letter, ""))
            if named and letter not in _IN_USE and letter.lower() not in _IN_USE:
                table[code] = named[1][0].lower()
    for start in _SYMBOLS:
        table |= {start + place: chr(ord("a") + place) for place in range(26)}
    return table


@cache
def foreign_letters() -> tuple[dict[int, str], dict[int, str]]:
    """(capitals, small letters) of other scripts that look like a Latin letter."""
    from confusable_homoglyphs.confusables import confusables_data

    capitals: dict[int, str] = {}
    small: dict[int, str] = {}
    for letter, alike in confusables_data.items():
        if len(letter) != 1 or not unicodedata.name(letter, "").startswith(_SCRIPTS):
            continue
        latin = [
            a["c"] for a in alike if len(a["c"]) == 1 and a["c"].isascii() and a["c"].isalpha()
        ]
        if latin:
            (capitals if letter.isupper() else small)[ord(letter)] = latin[0].lower()
    small |= {ord(letter): latin for letter, latin in _ALIKE_TOO.items()}
    return capitals, small


@cache
def any_unusual() -> re.Pattern[str]:
    return re.compile(_class(unusual_letters()))


def holds_foreign(text: str) -> bool:
    """Told from the script first: the table need not be there for a text in Latin letters."""
    return _SCRIPT.search(text) is not None and any_foreign().search(text) is not None


@cache
def any_foreign() -> re.Pattern[str]:
    capitals, small = foreign_letters()
    return re.compile(_class({**capitals, **small}))


@cache
def any_genuine() -> re.Pattern[str]:
    """A letter that is neither Latin nor looks like it."""
    capitals, small = foreign_letters()
    alike = "".join(map(chr, sorted({*capitals, *small})))
    return re.compile(rf"[^\W\d_\u0000-\u024f{alike}]")


def _class(letters: Iterable[int]) -> str:
    return "[" + "".join(map(chr, sorted(letters))) + "]"
