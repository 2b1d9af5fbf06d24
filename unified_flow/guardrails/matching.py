"""Which of a user's keywords and phrases a text holds: whole words, in whatever disguise.

Ten thousand rules are one automaton (Aho and Corasick, 1975), built once for each version of the
rules; the time of a search depends on the text alone. What counts as a word, and which disguises
are seen through: `normalize.py`, `evasion.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from unified_flow.errors import InputError
from unified_flow.guardrails.evasion import (
    SHORTEST_SPELLED,
    drawn_together,
    hidden,
    skeleton,
    stretches,
)
from unified_flow.guardrails.normalize import folded, visible, words

Kind = Literal["keyword", "phrase"]


@dataclass(frozen=True)
class Rule:
    """`text` as the user wrote it; `escalates`: a person answers instead of nobody."""

    kind: Kind
    text: str
    escalates: bool = False


@dataclass(frozen=True)
class Match:
    """`evaded`: the text hides the words, so that the match is a little less certain."""

    rule: Rule
    evaded: bool


def checked_rule(text: str) -> str:
    """`text` as it is kept. Raises InputError for a rule that holds nothing or nearly anything."""
    rule = " ".join(text.split())
    found = words(folded(visible(rule)))
    if not rule or (not found and not _symbols(rule)):
        raise InputError("a rule needs a word or a sign in it", field="rule")
    if len(found) == 1 and len(found[0]) == 1 and found[0].isascii():
        raise InputError(f"the rule {rule!r} would match every {found[0]}", field="rule")
    return rule


def read_as(rule: str) -> str:
    """What the rule is found by: rules that read the same are one rule."""
    plain = words(folded(visible(rule)))
    return _line(plain) if plain else _symbols(rule)


class Matcher:
    """The rules of one user. Safe among threads once built."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._plain: dict[str, list[Rule]] = {}
        self._signs: dict[str, list[Rule]] = {}
        self._skeletons: dict[str, list[tuple[str, Rule]]] = {}
        self._spelled: dict[str, list[Rule]] = {}
        for rule in rules:
            self._add(rule)
        self._words = _automaton(self._plain)
        self._hidden = _automaton(self._skeletons)

    def _add(self, rule: Rule) -> None:
        seen = visible(rule.text)
        plain = words(folded(seen))
        if not plain:
            self._signs.setdefault(_symbols(rule.text), []).append(rule)
            return
        self._plain.setdefault(_line(plain), []).append(rule)
        other = words(skeleton(seen))
        joined = "".join(other)
        drawn = _line([drawn_together(word) for word in other])
        self._skeletons.setdefault(drawn, []).append((joined, rule))
        if len(joined) >= SHORTEST_SPELLED:
            self._spelled.setdefault(joined, []).append(rule)

    def matches(self, text: str) -> list[Match]:
        """Every rule that the text breaks, once each; those found as written come first."""
        seen = visible(text)
        found: dict[Rule, Match] = {}
        for line in _found(self._words, _line(words(folded(seen)))):
            for rule in self._plain[line[1]]:
                found.setdefault(rule, Match(rule, evaded=False))
        for rule in self._in_signs(text):
            found.setdefault(rule, Match(rule, evaded=False))
        for rule in self._in_disguise(seen):
            found.setdefault(rule, Match(rule, evaded=True))
        return list(found.values())

    def _in_signs(self, text: str) -> Iterator[Rule]:
        if self._signs:
            shown = _symbols(text)
            for signs, rules in self._signs.items():
                if signs in shown:
                    yield from rules

    def _in_disguise(self, seen: str) -> Iterator[Rule]:
        second = hidden(seen) if self._skeletons else None
        if second is None:
            return
        for spelled in second.spelled:
            yield from self._spelled.get(spelled, ())
        starts = list(accumulate((len(word) + 1 for word in second.drawn), initial=1))
        for end, line in _found(self._hidden, _line(second.drawn)):
            first = bisect_right(starts, end - len(line) + 2) - 1
            last = bisect_right(starts, end)
            if any(second.shows(place) for place in range(first, last)):
                written = "".join(second.plain[first:last])
                for joined, rule in self._skeletons[line]:
                    if stretches(written, joined):
                        yield rule


def _automaton(lines: Iterable[str]) -> Any:
    """None where there is nothing to look for."""
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for line in lines:
        automaton.add_word(line, line)
    if not len(automaton):
        return None
    automaton.make_automaton()
    return automaton


def _found(automaton: Any, text: str) -> Iterable[tuple[int, str]]:
    """(place of the last character, line) of every line in `text`, overlapping ones too."""
    return () if automaton is None else automaton.iter(text)


def _line(parts: Sequence[str]) -> str:
    """Words between spaces, so that only whole ones are found."""
    return f" {' '.join(parts)} "


def _symbols(text: str) -> str:
    return "".join(c for c in visible(text) if not c.isspace() and not c.isalnum())
