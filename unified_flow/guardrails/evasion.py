"""Words that hide what they are: look-alike letters, digits for letters, s p a c e d, stretched.

A word is read a second way only where it shows a sign of hiding, so that an innocent word is never
matched by a form that nobody wrote. `skeleton` is that second way: of rules and of such words.
Of a long text, whatever can be is done for all of it, or once for each word that differs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unified_flow.guardrails import accents
from unified_flow.guardrails.lookalikes import (
    STAND_INS,
    Scripts,
    as_letters,
    foreign,
    has_other_script,
    holds_foreign,
)
from unified_flow.guardrails.normalize import INDIC, NO_WORDS, folded
from unified_flow.guardrails.spacing import spelled
from unified_flow.guardrails.vocabulary import Vocabulary, drawn_together

_SIGN = "[@$€!|+*~^`\\\\\u2800]"
_GAP = re.compile(f"([^\\w@$€!|+*~^`\\\\\u2800\0{INDIC}]+)")
_NO_WORDS = re.compile(f"[{NO_WORDS}]+")
_STRETCHED = re.compile(r"([^\W\d_])\1\1")
_APART = re.compile(r"\b\w\W+\w\b")
_CODED = re.compile(
    rf"[^\W\d_]\d|\d[^\W\d_]|\w{_SIGN}+\w|[$€@!|][^\W\d_]|[^\W\d_][$@]|(?<!\w)\w\W+\w*[\d$@]"
)
# Signs that stand for themselves: alone, before a word, after it. Two are letters alone as well.
_AS_SIGNS = re.compile(
    rf"(?<![\w{_SIGN[1:-1]}])(?:(?![@$](?!\S)){_SIGN}+(?![\w{_SIGN[1:-1]}])|[+*~^`\\\u2800]+(?=\w))"
    rf"|(?<=\w)[!|+*~^`\\€\u2800]+(?![\w{_SIGN[1:-1]}])"
)
_ASCII = re.compile("[A-Za-z]")
_PRICE = re.compile(r"[$€]\d|\d[$€]")
_ENDS = "0123456789@$€!|+*~^`\\\u2800"
_SIGNS_AND_DIGITS = frozenset(_ENDS)
# With digits before or after them, shorter words are something else: COP26, MP3, K9.
SHORTEST_NUMBERED = 4


@dataclass(frozen=True)
class Hidden:
    """What a text may say besides what is written: by the place of a token in it the rules' words
    that it may be, of those the `shown` ones with a sign of hiding; what spaced letters may spell.
    """

    readings: Mapping[int, Sequence[str]]
    shown: frozenset[int]
    spelled: Sequence[str]


def skeleton(seen: str) -> str:
    """`seen` (from `visible`) in letters that all look-alikes share."""
    if seen.isascii() or not has_other_script(seen):
        return folded(seen).translate(STAND_INS)
    return folded(seen.translate(as_letters()))


def hidden(seen: str, plain: Iterable[str], known: Vocabulary) -> Hidden | None:
    """None if nothing in the text shows a sign of hiding: nearly every text. `plain`: its words
    as they are written."""
    scripts = Scripts.of(seen)
    accented = {} if seen.isascii() else accents.read(accents.marked(plain), known)
    seen = seen.replace("_", "-")
    coded = False
    if not _SIGNS_AND_DIGITS.isdisjoint(seen):
        coded = _CODED.search(seen) is not None
        seen = _AS_SIGNS.sub("·", seen)
    stretched = _STRETCHED.search(seen.lower()) is not None
    if not (accented or scripts.disguise or coded or stretched or _APART.search(seen)):
        return None
    parts = _GAP.split(_NO_WORDS.sub(" \0 ", seen))
    found = spelled(parts[::2], parts[1::2], _coded)
    readings = _readings(set(found.tokens), known, scripts)
    if stretched:
        _add_stretched(readings, found.tokens, known)
    if accented:
        _add_accented(readings, found.tokens, accented)
    places = [place for place, token in enumerate(found.tokens) if token in readings]
    shown = {place for place in places if readings[found.tokens[place]].shown}
    return Hidden(
        {place: readings[found.tokens[place]].words for place in places},
        frozenset(shown | found.apart),
        skeleton(" ".join(found.spelled)).split(),
    )


@dataclass
class _Reading:
    """The rules' words that a token may be; `shown`: it shows a sign of hiding."""

    words: list[str] = field(default_factory=list)
    shown: bool = False

    def add(self, word: str, *, shown: bool) -> None:
        if word not in self.words:
            self.words.append(word)
        self.shown = self.shown or shown


_Readings = dict[str, _Reading]


def _readings(tokens: Collection[str], known: Vocabulary, scripts: Scripts) -> _Readings:
    """As they are, and without the digits and signs at their ends."""
    odd = [token for token in tokens if not token.isalpha() and not token.isdigit()]
    bare = [token.strip(_ENDS) for token in odd]
    owners = [token for token in tokens if not token.isdigit()]
    forms = list(owners)
    for token, inner in zip(odd, bare, strict=True):
        if inner != token:
            owners.append(token)
            forms.append(inner)
        if len(inner) > 4 and not inner[1].isalnum() and not inner[-2].isalnum():
            owners.append(token)  # s|p|a|m
            forms.append("".join(filter(str.isalnum, inner)))
    readings: _Readings = defaultdict(_Reading)
    words = skeleton(" ".join(forms)).split(" ")
    for token, form, word in zip(owners, forms, words, strict=True):
        if word in known.words:
            readings[token].add(word, shown=_shows(token, form, scripts))
    masked = {token: inner for token, inner in zip(odd, bare, strict=True) if "*" in inner}
    for token, inner in zip(masked, folded(" ".join(masked.values())).split(), strict=True):
        for word in known.masked(inner):
            readings[token].add(word, shown=True)
    return readings


def _add_stretched(readings: _Readings, tokens: Iterable[str], known: Vocabulary) -> None:
    owners = [token for token in set(tokens) if len(token) > 2 and _STRETCHED.search(token.lower())]
    plain = skeleton(" ".join(owners))
    drawn = drawn_together(plain).split()
    for token, word, short in zip(owners, plain.split(), drawn, strict=True):
        for meant in known.stretched(word, short):
            readings[token].add(meant, shown=True)


def _add_accented(readings: _Readings, tokens: Iterable[str], accented: Mapping[str, str]) -> None:
    owners = [token for token in set(tokens) if not token.isascii()]
    for token, word in zip(owners, folded(" ".join(owners)).split(), strict=True):
        if (meant := accented.get(word.strip(_ENDS))) is not None:
            readings[token].add(meant, shown=True)


def _shows(token: str, form: str, scripts: Scripts) -> bool:
    if not form.isascii() and _in_foreign_letters(form, scripts):
        return True
    if not form.isalpha():
        return _coded(form)
    if form == token:
        return False
    if any(map(str.isdigit, token)):
        return len(form) >= SHORTEST_NUMBERED
    return len(form) > 2 and len(token) > 2 * len(form) - 2  # s|p|a|m


def _coded(chunk: str) -> bool:
    """Digits or signs among letters, as in `v1agra`; not `mp3x4`, `a55` or `A$5`."""
    if _PRICE.search(chunk):
        return False
    letters = sum(map(str.isalpha, chunk))
    digits = sum(map(str.isdigit, chunk))
    signs = len(chunk) - letters - digits
    if not letters or not (digits or signs):
        return False
    return letters + signs >= max(2, digits) or (letters > 1 and len(chunk) > 4)


def _in_foreign_letters(chunk: str, scripts: Scripts) -> bool:
    """Scripts are mixed within the word, or all of it looks Latin and is meant to be."""
    if not holds_foreign(chunk):
        return False
    if _ASCII.search(chunk):
        return True
    alike = foreign()
    return scripts.reads_latin and all(c in alike for c in chunk if c.isalpha())
