"""Letters that stand apart and may spell a word: `s p a m`, `s.p.a.m`, `b u y   n o w`, `s.p.am`.

A list is not spelled (`a, s, s`), and letters that stand apart in different ways are not one word
(`5 p.a. m`); wider gaps part words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unified_flow.guardrails.vocabulary import SHORTEST_SPELLED

# Words of one letter, which may stand before or after a word that is spelled out.
_ONE_LETTER = frozenset("aiuoyeàéóAIUOYEÀÉÓ")
_LIST = re.compile(r"[,;:]\s")
_TIGHT, _MIXED, _LISTED = 0, 1000, 2000


@dataclass
class Spelled:
    """`tokens`: those of the text, but single letters that make a word as one, at the places in
    `apart`; `spelled`: what else single letters may say, as it is written."""

    tokens: list[str] = field(default_factory=list)
    apart: set[int] = field(default_factory=set)
    spelled: list[str] = field(default_factory=list)


def spelled(tokens: Sequence[str], gaps: Sequence[str], coded: Callable[[str], bool]) -> Spelled:
    """`gaps[n]` stands between `tokens[n]` and the next. `coded`: whether digits or signs are
    among the letters of a token."""
    found = Spelled()
    single = [n for n, t in enumerate(tokens) if len(t) == 1 and (t.isalnum() or t in "@$")]
    done = place = 0
    while place < len(single):
        first = last = single[place]
        place += 1
        while place < len(single) and single[place] == last + 1:
            last += 1
            place += 1
        found.tokens += tokens[done:first]
        done = last + 1
        after = tokens[done] if done < len(tokens) else ""
        if first == last:
            found.tokens.append(tokens[first])
            if tokens[first].isalpha() and coded(after) and _width(gaps[last]) < _LISTED:
                found.spelled.append(tokens[first] + after)  # s p4m
            continue
        widths = [_width(gap) for gap in gaps[first:last]]
        whole, narrow = _run(found, tokens[first:done], widths, coded)
        if first and len(whole[0]) > 1 and _width(gaps[first - 1]) == narrow:
            found.spelled.append(tokens[first - 1] + whole[0])  # sp.a.m
        if after and len(whole[-1]) > 1 and _width(gaps[last]) == narrow:
            found.spelled.append(whole[-1] + after)  # s.p.am
    found.tokens += tokens[done:]
    return found


def _run(
    found: Spelled, letters: Sequence[str], widths: Sequence[int], coded: Callable[[str], bool]
) -> tuple[Sequence[str], int]:
    """Of single letters one after another, with the gaps between them: those that stand together,
    and how narrow their gaps are."""
    narrow = min(widths)
    parts = [letters[0]]
    for letter, width in zip(letters[1:], widths, strict=True):
        if width == narrow:
            parts[-1] += letter
        else:
            parts.append(letter)
    if narrow == _LISTED:
        found.tokens += letters
        return letters, narrow
    if len(parts) > 1 and narrow > _TIGHT and max(widths) < _MIXED:
        found.spelled += _readings("".join(letters))
    for part in parts:
        if len(part) >= SHORTEST_SPELLED and (part.isalpha() or coded(part)):
            found.apart.add(len(found.tokens))
            found.tokens.append(part)
            found.spelled += _readings(part)
        else:
            found.tokens += part
    return parts, narrow


def _readings(part: str) -> list[str]:
    """What the letters may spell; a word of one letter before or after it may be left out."""
    made = [part]
    if part[0] in _ONE_LETTER:
        made.append(part[1:])
    if part[-1] in _ONE_LETTER:
        made.append(part[:-1])
    return made


def _width(gap: str) -> int:
    """Of white space its length; signs alone are narrower, signs with white space wider."""
    if len(gap) == 1:
        return 1 if gap.isspace() else _TIGHT
    if gap.isspace():
        return min(len(gap), _MIXED - 1)
    if _LIST.search(gap):
        return _LISTED
    return _MIXED if any(map(str.isspace, gap)) else _TIGHT
