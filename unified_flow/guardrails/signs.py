"""The signs of a rule, which are part of what it says: `18+`, `$100`, `.net`, `#ad`, `C++`.

Punctuation that ends, joins or wraps words is none (`spam!`, `buy-now`, `(spam)`), nor is a bullet
or markup (`* spam`, `_spam_`). What stands right before or after a word has to stand there in the
text; what stands by itself (`free $$$`) has to be between the same words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_SIGNS = frozenset("#@%&\u2030\u00a7")
_MARKUP = frozenset("^`|~\u00b4\u00a8\u00b8\u00af")
# Before a word and after a blank these are no punctuation: `.net`, `/all`, `!help`, `:smile:`.
_LEADING = frozenset(".!/:\\?")
_REPEATED = frozenset(".!?,;-\u2013\u2014*_")

Span = tuple[int, int]


@dataclass(frozen=True)
class Gap:
    """What a rule asks of the text before, between or after its words: that it begins with
    `after`, ends with `before`, and has `apart` in it, blanks aside."""

    after: str = ""
    apart: tuple[str, ...] = ()
    before: str = ""

    def fits(self, text: str) -> bool:
        if not (text.startswith(self.after) and text.endswith(self.before)):
            return False
        if not self.apart:
            return True
        together = "".join(text.split())
        return all(signs in together for signs in self.apart)


def asked(rule: str, spans: Sequence[Span]) -> tuple[Gap, ...]:
    """One more than the words at `spans` of the folded `rule`; none if it has no signs."""
    gaps = tuple(
        _gap(rule[end:start], ends=place > 0, begins=rule[start : start + 1])
        for place, (end, start) in enumerate(_between(spans, 0, len(rule)))
    )
    return gaps if any(gap != Gap() for gap in gaps) else ()


def fit(gaps: Sequence[Gap], text: str, spans: Sequence[Span], first: int) -> bool:
    """Whether what stands around the words at `spans`, from the `first` on, is as asked."""
    last = first + len(gaps) - 2
    before = spans[first - 1][1] if first else 0
    after = spans[last + 1][0] if last + 1 < len(spans) else len(text)
    edges = _between(spans[first : last + 1], before, after)
    return all(gap.fits(text[a:b]) for gap, (a, b) in zip(gaps, edges, strict=True))


def _between(spans: Sequence[Span], begin: int, end: int) -> list[Span]:
    edges = [begin, *(edge for span in spans for edge in span), end]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _gap(text: str, *, ends: bool, begins: str) -> Gap:
    """`ends`: a word ends before it; `begins`: the first letter of the word after it, if any."""
    parts = text.split()
    if not parts:
        return Gap()
    if len(parts) == 1 and ends and begins and not text[0].isspace() and not text[-1].isspace():
        return Gap(after=_trailing(text), before=_joining(text))
    after = _trailing(parts.pop(0)) if ends and not text[0].isspace() else ""
    before = ""
    if parts and begins and not text[-1].isspace():
        before = _leading(parts.pop(), begins)
    return Gap(after, tuple(filter(_means_something, parts)), before)


def _is_sign(char: str) -> bool:
    return char in _SIGNS or (char not in _MARKUP and unicodedata.category(char)[0] == "S")


def _trailing(run: str) -> str:
    while run and not _is_sign(run[-1]):
        run = run[:-1]
    return run


def _joining(run: str) -> str:
    while run and not _is_sign(run[0]):
        run = run[1:]
    return run


def _leading(run: str, begins: str) -> str:
    kept = run
    while kept and not (_is_sign(kept[0]) or kept[0] in _LEADING):
        kept = kept[1:]
    if not kept and run[-1] == "-" and begins.isdigit():
        return "-"  # below zero
    return kept


def _means_something(part: str) -> bool:
    if any(map(_is_sign, part)):
        return True
    return len(part) > 1 and not _REPEATED.issuperset(part)
