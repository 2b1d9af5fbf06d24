"""The rules' words in the letters that look-alikes share, and the rules that they make up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unified_flow.guardrails.matching import Rule

# Shorter words are too easily spelled by chance.
SHORTEST_SPELLED = 3
SHORTEST_MASKED = 4
_RUN = re.compile(r"(\S)\1+")
_RULES = ""


class Vocabulary:
    """Words are looked up, so that a text costs no more for ten thousand rules than for one."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self._first: dict[str, Any] = {}
        self._spelled: dict[str, list[Rule]] = {}
        self._drawn: dict[str, list[str]] = {}
        self._masks: dict[tuple[int, str, str], list[str]] = {}

    def add(self, words: Sequence[str], rule: Rule) -> None:
        node = self._first
        for word in words:
            node = node.setdefault(word, {})
            if word not in self.words:
                self.words.add(word)
                self._drawn.setdefault(drawn_together(word), []).append(word)
                if len(word) >= SHORTEST_MASKED:
                    self._masks.setdefault((len(word), word[0], word[-1]), []).append(word)
        node.setdefault(_RULES, []).append(rule)
        joined = "".join(words)
        if len(joined) >= SHORTEST_SPELLED:
            self._spelled.setdefault(joined, []).append(rule)

    def made_of(self, readings: Mapping[int, Sequence[str]]) -> Iterator[tuple[range, Rule]]:
        """The rules whose words stand one after another, with the places where they do."""
        for first, words in readings.items():
            nodes, place = [self._first], first
            while words and nodes:
                nodes = [node[word] for node in nodes for word in words if word in node]
                place += 1
                for node in nodes:
                    for rule in node.get(_RULES, ()):
                        yield range(first, place), rule
                words = readings.get(place, ())

    def spelled(self, letters: str) -> Sequence[Rule]:
        return self._spelled.get(letters, ())

    def stretched(self, plain: str, drawn: str) -> list[str]:
        """The words of which `plain` is one with letters stretched to three and more of them."""
        return [word for word in self._drawn.get(drawn, ()) if _stretches(plain, word)]

    def masked(self, word: str) -> list[str]:
        """The words that `word` may be, if each `*` is a letter, and no more than half of them."""
        if len(word) < SHORTEST_MASKED or word.count("*") * 2 > len(word):
            return []
        as_kept = word.replace("l", "i")
        return [
            known
            for known in self._masks.get((len(word), as_kept[0], as_kept[-1]), ())
            if all(a in ("*", b) for a, b in zip(as_kept, known, strict=True))
        ]


def drawn_together(plain: str) -> str:
    """Every run of a letter as one: `spaaam` and `spam` become the same."""
    return _RUN.sub(r"\1", plain)


def _stretches(plain: str, rule: str) -> bool:
    if plain == rule:
        return False
    here = [(letter, len(list(run))) for letter, run in groupby(plain)]
    there = [(letter, len(list(run))) for letter, run in groupby(rule)]
    return len(here) == len(there) and all(
        a == b and (m == n or m >= max(3, n)) for (a, m), (b, n) in zip(here, there, strict=True)
    )
