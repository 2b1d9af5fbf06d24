"""Words that hide what they are: look-alike letters, digits for letters, s p a c e d, stretched.

A word is read a second way only where it shows a sign of hiding, so that an innocent word is never
matched by a form that nobody wrote. `skeleton` is that second way: of rules and of such words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from unified_flow.guardrails.lookalikes import (
    any_foreign,
    any_genuine,
    foreign_letters,
    holds_foreign,
)
from unified_flow.guardrails.normalize import LETTER, UNSPACED, folded

# Digits and signs for letters; i, l and 1 look alike, so that all of them are i.
_STAND_INS = str.maketrans("0134578@$€!|+l", "oieastbaseiiti")
_SIGNS = re.compile(r"[*~^`\\]")
_SIGN = r"[@$€!|+*~^`\\]"
_SPACED = rf"(?<![^\W_])(?:{LETTER}|[@$])(?:[\W_]+?(?:{LETTER}|[@$])(?![^\W_]|[@$])){{2,}}"
_CHUNK = rf"[$€@]{{0,3}}{LETTER}(?:{LETTER}|{_SIGN}+(?={LETTER})|[$]+)*"
_TOKEN = re.compile(rf"(?P<spaced>{_SPACED})|(?P<chunk>{_CHUNK})|[{UNSPACED}]")
_RUN = re.compile(r"(\S)\1+")
_STRETCHED = re.compile(r"([^\W\d_])\1\1")
_HINT = re.compile(
    rf"[^\W\d_]\d|\d[^\W\d_]|[^\W_]{_SIGN}+[^\W_]|[$€@][^\W\d_]|[^\W\d_]\$|([^\W\d_])\1\1"
    rf"|(?<![^\W_])[^\W_][\W_]+[^\W_](?![^\W_])"
)
_ASCII = re.compile("[A-Za-z]")
_MIXED = re.compile(r"[A-Za-z][^\W\d_\u0000-\u024f]|[^\W\d_\u0000-\u024f][A-Za-z]")
_PRICE = re.compile(r"[$€]\d|\d[$€]")
# Words of one letter, which may stand before or after a word that is spelled out.
_ONE_LETTER = frozenset("aiuoyeàéó")
# Shorter words are too easily spelled by chance.
SHORTEST_SPELLED = 3


@dataclass(frozen=True)
class Hidden:
    """The second reading of a text. `chunks`: its words as written, `plain` the same as skeletons,
    `drawn` those with stretched letters drawn together; `spelled`: what spaced letters may spell.
    """

    chunks: list[str]
    plain: list[str]
    drawn: list[str]
    spelled: list[str]
    latin: bool
    _apart: frozenset[int]

    def shows(self, place: int) -> bool:
        """The word at `place` shows a sign of hiding."""
        return place in self._apart or _shows(self.chunks[place], self.latin)


def skeleton(seen: str) -> str:
    """`seen` (from `visible`) in letters that all look-alikes share."""
    if not seen.isascii() and holds_foreign(seen):
        capitals, small = foreign_letters()
        seen = folded(seen.translate(capitals)).translate(small)
    else:
        seen = folded(seen)
    return _SIGNS.sub("", seen).translate(_STAND_INS)


def drawn_together(plain: str) -> str:
    """Every run of a letter as one: `spaaam` and `spam` become the same."""
    return _RUN.sub(r"\1", plain)


def stretches(plain: str, rule: str) -> bool:
    """`plain` is `rule`, at most with letters stretched to three and more of them."""
    here = [(letter, len(list(run))) for letter, run in groupby(plain)]
    there = [(letter, len(list(run))) for letter, run in groupby(rule)]
    return len(here) == len(there) and all(
        a == b and (m == n or m >= max(3, n)) for (a, m), (b, n) in zip(here, there, strict=True)
    )


def hidden(seen: str) -> Hidden | None:
    """None if nothing in the text shows a sign of hiding: nearly every text."""
    foreign = not seen.isascii() and holds_foreign(seen)
    latin = not foreign or _mostly_latin(seen)
    disguised = foreign and (latin or _MIXED.search(seen) is not None)
    if not disguised and _HINT.search(seen) is None:
        return None
    chunks: list[str] = []
    spelled: list[str] = []
    apart: set[int] = set()
    for found in _TOKEN.finditer(seen):
        if found.lastgroup != "spaced":
            chunks.append(found[0])
            continue
        parts = _parts(found[0])
        spelled += _readings([found[0], *parts])
        for part in map(_letters, parts):
            if len(part) >= SHORTEST_SPELLED:
                apart.add(len(chunks))
            chunks.append(part)
    plain = skeleton(" ".join(chunks)).split(" ")
    drawn = drawn_together(" ".join(plain)).split(" ")
    return Hidden(chunks, plain, drawn, spelled, latin, frozenset(apart))


def _shows(chunk: str, latin: bool) -> bool:
    if _STRETCHED.search(chunk.lower()):
        return True
    if not chunk.isascii() and _in_foreign_letters(chunk, latin):
        return True
    return not chunk.isalpha() and _coded(chunk)


def _coded(chunk: str) -> bool:
    """Digits or signs among letters, as in `v1agra`; not `mp3x4`, `a55` or `A$5`."""
    if _PRICE.search(chunk):
        return False
    letters = sum(map(str.isalpha, chunk))
    digits = sum(map(str.isdigit, chunk))
    signs = len(chunk) - letters - digits
    return letters > 0 and letters + signs >= max(2, digits)


def _in_foreign_letters(chunk: str, latin: bool) -> bool:
    """Scripts are mixed within the word, or all of it looks Latin within a Latin text."""
    if not holds_foreign(chunk):
        return False
    alike = any_foreign().findall(chunk)
    return bool(_ASCII.search(chunk)) or (latin and len(alike) == sum(map(str.isalpha, chunk)))


def _mostly_latin(seen: str) -> bool:
    """Of the letters that can be told apart, more are Latin."""
    return len(_ASCII.findall(seen)) > len(any_genuine().findall(seen))


def _letters(spaced: str) -> str:
    return "".join(c for c in spaced if c.isalnum() or c in "@$" or "\u0900" <= c <= "\u0dff")


def _parts(spaced: str) -> list[str]:
    """Divided at the wider gaps, if some are wider: `b u y   n o w` is two words."""
    gaps = [gap for gap in re.findall(r"[\W_]+", spaced) if gap not in ("@", "$")]
    narrow = min(map(len, gaps))
    if all(len(gap) == narrow for gap in gaps):
        return [spaced]
    return re.split(rf"[^\w@$]{{{narrow + 1},}}", spaced)


def _readings(spaced: Sequence[str]) -> Iterator[str]:
    """What the letters may spell; a word of one letter before or after it may be left out."""
    for part in dict.fromkeys(spaced):
        plain = skeleton(_letters(part))
        yield plain
        if plain[:1] in _ONE_LETTER:
            yield plain[1:]
        if plain[-1:] in _ONE_LETTER:
            yield plain[:-1]
