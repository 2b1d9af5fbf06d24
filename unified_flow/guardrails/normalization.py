"""Text in the form in which rules are looked for, and what words in disguise stand for.

Two readings of a text are searched. The plain one is `words(folded(visible(text)))`: Unicode's
compatibility form (NFKC) without invisible characters and differences of case. The
second one, `undisguised`, puts a rule's word wherever a word of the text, letter by letter, may
stand for it. A word without any sign of disguise stays as it is, so that innocent text is safe.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

_CHARACTERS = tomllib.loads(Path(__file__).with_name("characters.toml").read_text("utf-8"))
_INVISIBLE, _MARKS, _BOXED, _LONG, _MARKED = (
    re.compile(f"[{_CHARACTERS[name]}]")
    for name in ("invisible", "marks", "boxed", "long", "marked_latin")
)
_UNSPACED, _KATAKANA, _INDIC = (_CHARACTERS[name] for name in ("unspaced", "katakana", "indic"))
_WORD = re.compile(rf"[{_UNSPACED}]|[{_KATAKANA}]+|(?:[^\W_{_UNSPACED}{_KATAKANA}]|[{_INDIC}])+")

_DIGITS = "0123456789"
_AT_ENDS = "|+*~^`\\"
_TOKEN = re.compile(r"[\w@$€!|+*~^`\\]+")
# What digits and signs stand for. `1`, `!` and `|` are i or l; the last four only divide letters.
_STAND_INS = [
    str.maketrans("0134578@$€!|+", f"o{letter}eastbase{letter}{letter}t", "*~^`\\")
    for letter in "il"
]
_ASCII_LETTER = re.compile("[A-Za-z]")
_PRICE = re.compile(r"[$€]\d|\d[$€]")
_DRAWN_OUT = re.compile(r"(.)\1\1+")
# Three and more single letters, all with the same gap; a list (`a, b, c`) is none.
_APART = re.compile(r"(?<!\w)[\w@$]([^\w@$,;:]{1,4})[\w@$](?:\1[\w@$])+(?!\w)")
_RUN_TOGETHER = re.compile(r"#(\w+)|(?<![A-Za-z])([A-Za-z]*[a-z][A-Z][A-Za-z]*)")
# `COP26` and `MP3` are no disguise: digits at an end are left out only of longer words.
_SHORTEST_NUMBERED = 4
_SHORTEST_FOREIGN = 4
# No rule has such a word: what is longer is not read letter by letter.
_LONGEST_WORD = 200
_NAME = re.compile(
    r"LATIN (?:(?:SMALL|CAPITAL) )?LETTER (?:SMALL CAPITAL |SCRIPT )?([A-Z])( WITH .+)?"
)
# Letters of their own in German, the Nordic languages and Spanish: `schwül`, `fån`, `año`.
_OWN_LETTERS = frozenset("åäöøüñ")


def visible(text: str) -> str:
    """The text without invisible characters, in Unicode's compatibility form; case is kept."""
    if text.isascii():
        return text
    text = _LONG.sub(" ", _INVISIBLE.sub("", text))
    text = _BOXED.sub(lambda boxed: unicodedata.name(boxed[0])[-1].lower(), text)
    return _MARKS.sub("", unicodedata.normalize("NFKC", text))


def folded(seen: str) -> str:
    """What `visible` gave, without differences of case."""
    return seen.lower() if seen.isascii() else _MARKS.sub("", seen.casefold())


def words(text: str) -> list[str]:
    """The words of what `folded` gave: letters and digits, without what stands between them."""
    return _WORD.findall(text)


def undisguised(seen: str, known: Collection[str], compounds: Mapping[str, str]) -> str | None:
    """`seen` (from `visible`) with the rules' words, `known`, where words stand for them; None if
    none does. `compounds`: phrases by their letters run together, as `buynow`."""
    seen = seen.replace("_", " ")
    readings = _Readings(seen, known, compounds)
    text = _RUN_TOGETHER.sub(readings.of_compound, seen) if compounds else seen
    text = _APART.sub(readings.of_letters, text)
    read = {token: readings.of_token(token) for token in set(_TOKEN.findall(text))}
    meant = {token: word for token, word in read.items() if word is not None}
    if meant:
        text = _TOKEN.sub(lambda token: meant.get(token[0], token[0]), text)
    return text if text != seen else None


class _Readings:
    """What the words of one text stand for among the words of the rules."""

    def __init__(self, seen: str, known: Collection[str], compounds: Mapping[str, str]) -> None:
        self._known = known
        self._compounds = compounds
        if seen.isascii():
            return
        # A letter that looks like no Latin one shows that the text is in another script.
        foreign = "".join(c for c in set(seen) if c > "\u024f" and c.isalpha())
        self._looks_latin = foreign.translate(_LATIN).isascii()
        self._has_latin = _ASCII_LETTER.search(seen) is not None
        self._marks_hide = all(map(self._hides_in_marks, set(_TOKEN.findall(seen))))

    def of_compound(self, found: re.Match[str]) -> str:
        phrase = self._compounds.get((found[1] or found[2]).casefold())
        return f" {phrase} " if phrase else found[0]

    def of_letters(self, found: re.Match[str]) -> str:
        """The word of letters that stand apart; a word of one letter may stand before them."""
        letters = "".join(c for c in found[0] if c.isalnum() or c in "@$")
        for run in (letters, letters[1:]) if letters[0] in "aiAI" else (letters,):
            if word := self._stands_for(run, self._known):
                return f" {word} "
            if word := self._stands_for(run, self._compounds):
                return f" {self._compounds[word]} "
        return found[0]

    def of_token(self, token: str) -> str | None:
        if len(token) > _LONGEST_WORD:
            return None
        if token.isascii() and token.isalpha() and not _DRAWN_OUT.search(token):
            return None
        as_written = token.strip("!" + _AT_ENDS).casefold()
        return self._stands_for(token, self._known, but=as_written)

    def _stands_for(self, token: str, among: Collection[str], but: str = "") -> str | None:
        """The first of what the token may stand for that is `among` the words."""
        token = token.rstrip("!" + _AT_ENDS).lstrip(_AT_ENDS)
        forms = [token.casefold()] if token.isascii() else self._spellings(token)
        forms += [core for form in forms if len(core := form.strip(_DIGITS)) >= _SHORTEST_NUMBERED]
        if _DRAWN_OUT.search(token):
            forms += [_DRAWN_OUT.sub(short, form) for form in forms for short in (r"\1", r"\1\1")]
        for form in forms:
            if form in among and form != but:
                return form
            if form.isalpha():
                continue
            for table in _STAND_INS:
                word = form.translate(table)
                if word in among and _is_coded(form):
                    return word
        return None

    def _spellings(self, token: str) -> list[str]:
        form = token.casefold()
        if not self._marks_hide and _MARKED.search(form):
            return [form]
        latin = token.translate(_LATIN).casefold()
        mixed = _ASCII_LETTER.search(token) is not None
        if not latin.isascii():
            return [form, form.translate(_cyrillic())] if mixed else [form]
        long = self._has_latin or len(token) >= _SHORTEST_FOREIGN
        return [form, latin] if mixed or (self._looks_latin and long) else [form]

    def _hides_in_marks(self, token: str) -> bool:
        """Whether the word has no marks, or such as no language puts there.

        Languages put them on letters of their own, and at the end of a word to tell forms apart
        (`salé`, `papá`). One such word shows that the text is in that language."""
        form = token.casefold()
        if form.isascii() or not _MARKED.search(form):
            return True
        if not _OWN_LETTERS.isdisjoint(form) or _MARKED.match(form[-1]):
            return False
        return form.translate(_LATIN) in self._known


def _is_coded(form: str) -> bool:
    """Digits or signs among letters, as in `v1agra`; not `mp3x4`, `a55` or `A$5`."""
    letters = sum(map(str.isalpha, form))
    others = len(form) - sum(map(str.isdigit, form))
    if not letters or _PRICE.search(form):
        return False
    return others >= max(2, len(form) - others) or (letters > 1 and len(form) > 4)


class _LatinLetters(dict[int, str]):
    """A table for `str.translate`: the Latin letter that another is with marks or in another style,
    or that it looks like; itself if there is none."""

    def __missing__(self, code: int) -> str:
        self[code] = _latin(chr(code))
        return self[code]


def _latin(char: str) -> str:
    if char.isascii():
        return char
    if named := _NAME.fullmatch(unicodedata.name(char, "")):
        return named[1].lower()
    from confusable_homoglyphs.confusables import confusables_data

    alike = (each["c"] for each in confusables_data.get(char, ()))
    return next((c.lower() for c in alike if c.isascii() and c.isalpha()), char)


_LATIN = _LatinLetters()


@cache
def _cyrillic() -> dict[int, str]:
    """A table for `str.translate`: Latin letters to the Cyrillic ones that they look like."""
    return {ord(latin): c for c in map(chr, range(0x0430, 0x0450)) if (latin := _latin(c)) != c}
