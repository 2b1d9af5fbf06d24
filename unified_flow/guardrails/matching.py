"""Which of a user's keywords and phrases a text holds: whole words, in many disguises.

Ten thousand rules are one automaton (Aho and Corasick, 1975), built once for each version of the
rules; the time of a search depends on the text alone. What counts as a word, and which disguises
are seen through: `normalize.py`, `evasion.py`; what signs a rule asks for besides: `signs.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from unified_flow.errors import InputError
from unified_flow.guardrails.evasion import hidden, skeleton
from unified_flow.guardrails.normalize import folded, places, visible, words
from unified_flow.guardrails.signs import Gap, asked, fit
from unified_flow.guardrails.vocabulary import Vocabulary

Kind = Literal["keyword", "phrase"]
_WORDS = re.compile(r"[^\W_]+")
_TAG = re.compile(r"#(\w+)")
_CAMEL = re.compile(r"(?<![A-Za-z])[A-Za-z]*[a-z][A-Z][A-Za-z]*")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


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
    signs = _symbols(visible(rule)).strip()
    if not found and not signs:
        raise InputError("a rule needs a word or a sign in it", field="rule")
    if not found and len(signs) == 1 and (signs.isascii() or unicodedata.category(signs)[0] == "P"):
        raise InputError(
            f"the rule {rule!r} would match nearly every text",
            field="rule",
            hint="write at least two signs, or the word that is meant",
        )
    bare = len(found) == 1 and not _gaps(folded(visible(rule)))
    if bare and len(found[0]) == 1 and found[0].isascii():
        raise InputError(f"the rule {rule!r} would match every {found[0]}", field="rule")
    return rule


def read_as(rule: str) -> str:
    """What the rule is found by: rules that read the same are one rule."""
    text = folded(visible(rule))
    plain = words(text)
    if not plain:
        return _symbols(visible(rule))
    gaps = _gaps(text)
    return f"{_line(plain)}{gaps}" if gaps else _line(plain)


class Matcher:
    """The rules of one user. Safe among threads once built."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._plain: dict[str, list[Rule]] = {}
        self._signed: dict[str, list[tuple[tuple[Gap, ...], Rule]]] = {}
        self._signs: dict[str, list[Rule]] = {}
        self._tags: dict[str, list[Rule]] = {}
        self._known = Vocabulary()
        for rule in rules:
            self._add(rule)
        self._words = _automaton([*self._plain, *self._signed])

    def _add(self, rule: Rule) -> None:
        seen = visible(rule.text)
        text = folded(seen)
        plain = words(text)
        if not plain:
            self._signs.setdefault(_symbols(seen), []).append(rule)
            return
        alike = words(skeleton(seen))
        if gaps := _gaps(text):
            self._signed.setdefault(_line(plain), []).append((gaps, rule))
            # `sp@m` is known by its letters; the word of `.net` is not, for its sign is lost there.
            if alike != words(skeleton(" ".join(plain))):
                self._known.add(alike, rule)
            return
        self._plain.setdefault(_line(plain), []).append(rule)
        self._known.add(alike, rule)
        if len(plain) > 1:
            self._tags.setdefault("".join(plain), []).append(rule)

    def matches(self, text: str) -> list[Match]:
        """Every rule that the text breaks, once each; those found as written come first."""
        seen = visible(text)
        read = folded(seen)
        plain = words(read)
        written = _once([*self._in_words(plain, read), *self._in_signs(seen)])
        evaded = _once([*self._run_together(seen), *self._in_disguise(seen, plain)])
        return [
            *(Match(rule, evaded=False) for rule in written.values()),
            *(Match(rule, evaded=True) for key, rule in evaded.items() if key not in written),
        ]

    def _in_words(self, plain: Sequence[str], text: str) -> Iterator[Rule]:
        signed: list[tuple[int, str]] = []
        for last, line in self._lines(plain):
            yield from self._plain.get(line, ())
            if line in self._signed:
                signed.append((last, line))
        if not signed:
            return
        spans = places(text)
        word_at = {last: n for n, last in enumerate(accumulate(len(word) + 1 for word in plain))}
        for last, line in signed:
            for gaps, rule in self._signed[line]:
                if fit(gaps, text, spans, word_at[last] - len(gaps) + 2):
                    yield rule

    def _lines(self, plain: Sequence[str]) -> Iterator[tuple[int, str]]:
        """With the place of each one's end in the line of `plain`."""
        if self._words is not None:
            yield from self._words.iter(_line(plain))

    def _in_signs(self, seen: str) -> Iterator[Rule]:
        if self._signs:
            shown = _symbols(seen)
            for signs, rules in self._signs.items():
                if signs in shown:
                    yield from rules

    def _run_together(self, seen: str) -> Iterator[Rule]:
        """Phrases as hashtags, or with a capital for each word."""
        if self._tags:
            for tag in _TAG.findall(seen):
                yield from self._tags.get(folded(tag), ())
            for joined in set(_CAMEL.findall(seen)):
                apart = words(folded(_CAPITAL.sub(" ", joined)))
                for _, line in self._lines(apart):
                    if line.count(" ") > 2:
                        yield from self._plain.get(line, ())

    def _in_disguise(self, seen: str, plain: Sequence[str]) -> Iterator[Rule]:
        second = hidden(seen, plain, self._known) if self._known.words else None
        if second is None:
            return
        for letters in second.spelled:
            yield from self._known.spelled(letters)
        for held, rule in self._known.made_of(second.readings):
            if not second.shown.isdisjoint(held):
                yield rule


def _gaps(text: str) -> tuple[Gap, ...]:
    return asked(text, places(text))


def _once(rules: Iterable[Rule]) -> dict[int, Rule]:
    return {id(rule): rule for rule in rules}


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


def _line(parts: Sequence[str]) -> str:
    """Words between spaces, so that only whole ones are found."""
    return f" {' '.join(parts)} "


def _symbols(seen: str) -> str:
    """The signs, with a blank for the words between them."""
    return _WORDS.sub(" ", "".join(seen.split()))
