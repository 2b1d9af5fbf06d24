"""Which of a user's keywords and phrases a text holds: whole words, also in disguise.

A rule is a word, which is found in its English inflections too (`spam`: `spams`); several words,
which are found one after another; or either with `*` at an end: `spam*` is every word that begins
so. Signs of a rule are part of it: `18+`, `$100`, `.net`, `#ad`, `C++`. Punctuation that ends,
joins or wraps words (`spam!`, `buy-now`, `(spam)`) is none.

Ten thousand rules are one automaton (Aho and Corasick, 1975), built once for each version of the
rules; the time of a search depends on the text alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from unified_flow.errors import InputError
from unified_flow.guardrails.normalization import folded, undisguised, visible, words

Kind = Literal["keyword", "phrase"]
Wildcards = tuple[bool, bool]
_SHORTEST_STEM = 3
_VOWELS = "aeiou"
_BEGINNING = re.compile(r"\*+(?=\w)")
_END = re.compile(r"(?<=\w)\*+$")
_NO_PATTERN = re.compile(r"(?<=\w)[*?|^\\()\[\]{}]+(?=\w)|(?<=\w)\*+(?=.)|(?<=[^*])\*+(?=\w)")
# Besides these, whatever Unicode counts among the symbols (currency, mathematics, pictures).
_SIGNS = frozenset("#@%&\u2030\u00a7")
_MARKUP = frozenset("^`|~\u00b4\u00a8\u00b8\u00af")
_LEADING = re.compile(r"(?:^|(?<=\s))(?:[.!/:\\?]+(?=\w)|-(?=\d))")
_CLOSING = re.compile(r"(?<=[^\s.,;:!?…'\")\]}])[.,;:!?…'\")\]}]+(?=\s|$)")
# Punctuation by itself, but a bullet, a dash, an ellipsis or markup.
_EMOTICON = re.compile(r"(?:^|(?<=\s))(?![.!?,;\-\u2013\u2014*_]+(?:\s|$))[^\w\s]{2,}(?=\s|$)")
_EMOTICON_AT_END = re.compile(rf"{_EMOTICON.pattern}$")
_ALPHANUMERIC = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Rule:
    """`text` as the user wrote it; `escalates`: messages that match go to a person."""

    kind: Kind
    text: str
    escalates: bool = False


@dataclass(frozen=True)
class Match:
    """`disguised`: the text hides the words, so that the match is a little less certain."""

    rule: Rule
    disguised: bool


def checked_rule(text: str) -> str:
    """`text` as it is stored. Raises InputError for a rule that matches nothing, or nearly any
    text."""
    rule = " ".join(text.split())
    seen = visible(rule)
    found = words(folded(seen))
    signs = _symbols(seen).strip()
    if not found and not signs:
        raise InputError("a rule needs a word or a sign in it", field="rule")
    if not found and len(signs) == 1 and (signs.isascii() or unicodedata.category(signs)[0] == "P"):
        raise InputError(
            f"the rule {rule!r} would match nearly every text",
            field="rule",
            hint="write at least two signs, or the word that is meant",
        )
    bare = len(found) == 1 and not _with_signs(seen)
    if bare and len(found[0]) == 1 and found[0].isascii():
        raise InputError(f"the rule {rule!r} would match every {found[0]}", field="rule")
    return rule


def checked_pattern(text: str) -> str:
    """As `checked_rule`, and raises InputError also for what a rule cannot mean. (Rules of earlier
    versions may have it: there it is ignored.)"""
    rule = checked_rule(text)
    seen = visible(rule)
    # A `*` that stands anywhere but beside the letters at an end of the rule.
    lone_star = any(not any(map(str.isalnum, part)) for part in seen.split() if "*" in part)
    if _NO_PATTERN.search(seen) or lone_star:
        raise InputError(
            f"the rule {rule!r} is no pattern that rules know",
            field="rule",
            hint="write words; only `*` at an end stands for more letters, as in spam*",
        )
    if _wildcards(seen) == (False, False) and (_BEGINNING.match(seen) or _END.search(seen)):
        raise InputError(
            f"the rule {rule!r} would match too many words",
            field="rule",
            hint=f"write {_SHORTEST_STEM} letters or more beside the `*`",
        )
    return rule


def canonical(rule: str) -> str:
    """What the rule is found by: rules that read the same are one rule."""
    seen = visible(rule)
    if signs := _with_signs(seen):
        return f"{signs} {_wildcards(seen)}"
    plain = words(folded(seen))
    return _key(plain, *_wildcards(seen)) if plain else _symbols(seen)


def inflections(rule: str) -> list[str]:
    """Regular English forms in which a rule of a single word is found as well; none of others,
    and of some words also a form that is none (`deterred` and `detered`)."""
    seen = visible(rule)
    plain = words(folded(seen))
    if len(plain) != 1 or _with_signs(seen) or any(_wildcards(seen)):
        return []
    word = plain[0]
    if len(word) < _SHORTEST_STEM or not word.isalpha() or max(word) > "\u024f":
        return []
    if word[-1] == "y" and word[-2] not in _VOWELS:
        return [f"{word[:-1]}ies", f"{word[:-1]}ied", f"{word}ing"]
    plural = f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"
    if word.endswith("ee"):
        return [plural, f"{word}ing"]
    if word[-1] == "e":
        return [plural, f"{word}d", f"{word[:-1]}ing"]
    stems = _verb_stems(word)
    return [plural, *(f"{stem}{end}" for stem in stems for end in ("ed", "ing"))]


def _verb_stems(word: str) -> list[str]:
    """`kill`; `spamm`, for a consonant after one short vowel is doubled; `panick`. In longer words
    the stress decides, which letters do not show: `offer` and `admitt`."""
    doubles = word[-1] not in f"{_VOWELS}wxy" and word[-2] in _VOWELS and word[-3] not in _VOWELS
    if not doubles:
        return [word]
    if word[-1] == "c":
        return [f"{word}k"]
    doubled = word + word[-1]
    if len(re.findall(f"[{_VOWELS}y]+", word)) == 1:
        return [doubled]
    return [word, doubled]


class Matcher:
    """The rules of one user. Safe among threads once built."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_words: dict[str, list[Rule]] = {}
        self._by_signs: dict[str, list[Rule]] = {}
        self._by_both: dict[str, list[tuple[Wildcards, Rule]]] = {}
        self._compounds: dict[str, str] = {}
        self._known: set[str] = set()
        for rule in rules:
            self._add(rule)
        self._words = _automaton(self._by_words)
        self._signed = _automaton(self._by_both)

    def _add(self, rule: Rule) -> None:
        seen = visible(rule.text)
        plain = words(folded(seen))
        if not plain:
            self._by_signs.setdefault(_symbols(seen), []).append(rule)
        elif signs := _with_signs(seen):
            self._by_both.setdefault(signs, []).append((_wildcards(seen), rule))
        else:
            self._by_words.setdefault(_key(plain, *_wildcards(seen)), []).append(rule)
            for form in inflections(rule.text):
                self._by_words.setdefault(_key([form]), []).append(rule)
                self._known.add(form)
            self._known.update(plain)
            if len(plain) > 1:
                self._compounds["".join(plain)] = " ".join(plain)

    def matches(self, text: str) -> list[Match]:
        """Every rule that the text breaks, once each; those found as written come first."""
        seen = visible(text)
        written = _once([*self._in_words(seen), *self._in_signs(seen), *self._in_both(seen)])
        meant = undisguised(seen, self._known, self._compounds) if self._known else None
        hidden = _once(self._in_words(meant)) if meant is not None else {}
        return [
            *(Match(rule, disguised=False) for rule in written.values()),
            *(Match(rule, disguised=True) for key, rule in hidden.items() if key not in written),
        ]

    def _in_words(self, seen: str) -> Iterator[Rule]:
        if self._words is not None:
            for _, key in self._words.iter(_key(words(folded(seen)))):
                yield from self._by_words[key]

    def _in_signs(self, seen: str) -> Iterator[Rule]:
        if self._by_signs:
            shown = _symbols(seen)
            for signs, rules in self._by_signs.items():
                if signs in shown:
                    yield from rules

    def _in_both(self, seen: str) -> Iterator[Rule]:
        if self._signed is None:
            return
        text = _tidy(folded(seen))
        for last, found in self._signed.iter(text):
            after = text[last + 1 : last + 2]
            before = text[last - len(found) : last - len(found) + 1] if last >= len(found) else ""
            begins_within = before.isalnum() and found[0].isalnum()
            ends_within = after.isalnum() and found[-1].isalnum()
            for (may_begin, may_end), rule in self._by_both[found]:
                if (may_begin or not begins_within) and (may_end or not ends_within):
                    yield rule


def _wildcards(seen: str) -> Wildcards:
    """Whether a rule has `*` at its beginning and its end, and enough letters beside it."""
    first, last = _BEGINNING.match(seen), _END.search(seen)
    if not (first or last):
        return False, False
    plain = words(folded(seen))
    return (
        first is not None and len(plain[0]) >= _SHORTEST_STEM,
        last is not None and len(plain[-1]) >= _SHORTEST_STEM,
    )


def _key(plain: Sequence[str], begins: bool = False, ends: bool = False) -> str:
    """Words between spaces, so that only whole ones are found, but for those with `*`."""
    return f"{'' if begins else ' '}{' '.join(plain)}{'' if ends else ' '}"


def _with_signs(seen: str) -> str:
    """The rule as `_tidy` has it; empty if no sign is part of what it says."""
    text = _tidy(folded(seen))
    while text and not (_is_meant(text[-1]) or _EMOTICON_AT_END.search(text)):
        text = text[:-1]
    while text and not (_is_meant(text[0]) or _LEADING.match(text) or _EMOTICON.match(text)):
        text = text[1:]
    has_signs = any(map(_is_sign, text)) or _LEADING.search(text) or _EMOTICON.search(text)
    return text if has_signs else ""


def _tidy(text: str) -> str:
    """Drop punctuation after words, and join signs that only blanks divide."""
    parts = _CLOSING.sub("", text).split()
    if not parts:
        return ""
    gaps = ("" if _is_sign(a[-1]) and _is_sign(b[0]) else " " for a, b in pairwise(parts))
    return "".join(map("".join, zip(parts, (*gaps, ""), strict=True)))


def _is_meant(char: str) -> bool:
    return char.isalnum() or _is_sign(char)


def _is_sign(char: str) -> bool:
    return char in _SIGNS or (char not in _MARKUP and unicodedata.category(char)[0] == "S")


def _symbols(seen: str) -> str:
    """The signs, with a blank for the words between them."""
    return _ALPHANUMERIC.sub(" ", "".join(seen.split()))


def _once(rules: Iterable[Rule]) -> dict[int, Rule]:
    return {id(rule): rule for rule in rules}


def _automaton(keys: Iterable[str]) -> Any:
    """None where there is nothing to look for."""
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for key in keys:
        automaton.add_word(key, key)
    if not len(automaton):
        return None
    automaton.make_automaton()
    return automaton
