"""Text as matching reads it: one form for all that a reader takes for the same words.

Marks that make another word of a word stay (`año` is not `ano`, `schwül` is not `schwul`); marks
that no orthography puts there go. Scripts written without spaces are read letter by letter.
"""

from __future__ import annotations

import re
import unicodedata

from unified_flow.guardrails.lookalikes import unusual, unusual_letters

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties: what no reader sees.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# What is left of combining marks after composing, strokes through letters, the pointing of
# Hebrew and Arabic and the Arabic lengthening stroke.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]"
)
# What the compatibility form writes with three to eighteen characters. Few messages have any; of
# one that is made of them they are not read, so that none takes longer than its length says.
_LONG = re.compile("[\u2474-\u249b\u3200-\u33ff\ufc5e-\ufdfc]")
# Written from right to left against its letters' own direction, up to the end of that.
_BACKWARDS = re.compile("\u202e([^\u202c\n]*)\u202c?")
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]+")
# Thai, Lao, Myanmar, Khmer, Hiragana, Han.
UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u309f\u2e80-\u2fdf\u3005-\u3007"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts are part of a word, though Python counts them as no letters.
INDIC = "\u0900-\u0963\u0966-\u0dff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff"
NO_WORDS = UNSPACED + _KATAKANA
_LETTER = rf"(?:[^\W_{NO_WORDS}]|[{INDIC}])"
_WORD = re.compile(rf"[{UNSPACED}]|[{_KATAKANA}]+|{_LETTER}+")


def visible(text: str) -> str:
    """Without what nobody sees, in Unicode's compatibility form; case is kept."""
    if text.isascii():
        return text
    text = _BACKWARDS.sub(lambda found: found[1][::-1], text)
    text = _REGIONAL.sub(_flag_or_letters, _UNSEEN.sub("", text))
    short, many = _LONG.subn(" ", text)
    if many * 20 > len(text):
        text = short
    return _MARKS.sub("", unicodedata.normalize("NFKC", text))


def folded(seen: str) -> str:
    """What `visible` gave, without differences of case and of unusual letters."""
    if seen.isascii():
        return seen.lower()
    text = seen.casefold()
    if not unusual().isdisjoint(text):
        text = text.translate(unusual_letters())
    return _MARKS.sub("", text)


def words(text: str) -> list[str]:
    """The words of what `folded` gave: letters and digits, without what stands between them."""
    return _WORD.findall(text)


def places(text: str) -> list[tuple[int, int]]:
    """Where in `text` each of its `words` begins and ends."""
    return [found.span() for found in _WORD.finditer(text)]


def _flag_or_letters(found: re.Match[str]) -> str:
    """Two regional indicators are a flag, any other number spells something."""
    if len(found[0]) == 2:
        return " "
    return "".join(chr(ord(letter) - 0x1F1E6 + ord("a")) for letter in found[0])
