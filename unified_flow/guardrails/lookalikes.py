"""Which characters stand for which letters: tables from Unicode's data, built on first use.

`unusual_letters` holds letters that no common orthography uses (IPA, small capitals, letters in
squares, uncommon marks); reading them as plain letters changes no real word. `foreign_letters`
holds letters of other scripts that look like Latin ones (Unicode UTS 39, confusables), which are
real letters too: `evasion.py` decides which of them are meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
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
_MIXED = re.compile(r"[A-Za-z][^\W\d_\u0000-\u024f]|[^\W\d_\u0000-\u024f][A-Za-z]")
# Nobody writes a message in these letters alone without meaning others: Cherokee and Lisu, of which
# only some letters look Latin, and Cyrillic ones of languages that need more than look-alikes.
_TELLING = re.compile(
    "[\u13a0-\u13ff\uab70-\uabbf\ua4d0-\ua4ff\u0405\u0455\u0500\u0501\u051a-\u051d\u04bb]"
)
# Digits and signs for letters, and signs that only divide them; i, l and 1 look alike, so that all
# of them are i.
STAND_INS = str.maketrans("0134578@$€!|+l", "oieastbaseiiti", "*~^`\\\u2800")
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
def as_letters() -> dict[int, int | str | None]:
    """For `str.translate`, before case is folded: whatever stands for a letter."""
    capitals, small = foreign_letters()
    large = {
        ord(large): latin
        for code, latin in small.items()
        if len(large := chr(code).upper()) == 1 and ord(large.casefold()) == code
    }
    alike = large | small | capitals | unusual_letters() | {ord("L"): "l"}
    return STAND_INS | {code: letter.translate(STAND_INS) for code, letter in alike.items()}


@cache
def unusual() -> frozenset[str]:
    return frozenset(map(chr, unusual_letters()))


@dataclass(frozen=True)
class Scripts:
    """`reads_latin`: words wholly of letters that look Latin are meant so; `disguise`: there may be
    such words, or ones in which scripts are mixed."""

    reads_latin: bool = True
    disguise: bool = False

    @classmethod
    def of(cls, seen: str) -> Scripts:
        if seen.isascii() or not holds_foreign(seen):
            return cls()
        alike = foreign()
        latin = genuine = 0  # letters, and those of them that neither are Latin nor look so
        for letter, times in Counter(seen).items():
            if letter.isascii():
                latin += times if letter.isalpha() else 0
            elif letter > "\u024f" and letter not in alike:
                genuine += times if letter.isalpha() else 0
        reads_latin = latin > genuine or (not genuine and _TELLING.search(seen) is not None)
        return cls(reads_latin, reads_latin or _MIXED.search(seen) is not None)


def has_other_script(text: str) -> bool:
    """Whether one of the scripts is there whose letters may look Latin."""
    return _SCRIPT.search(text) is not None


def holds_foreign(text: str) -> bool:
    """Told from the script first: the table need not be there for a text in Latin letters."""
    return has_other_script(text) and not foreign().isdisjoint(text)


@cache
def foreign() -> frozenset[str]:
    capitals, small = foreign_letters()
    return frozenset(map(chr, (*capitals, *small)))
