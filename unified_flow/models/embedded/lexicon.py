"""What the rules know of a language: how it asks, what answers look like, how it refers back.

One `Lexicon` a language, in a module of its own; a language without one is read with the
English tables, which does no harm: their patterns rarely match another language's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

Kind = Literal["person", "time", "place", "number", "reason", "manner", "definition", "thing"]


def pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE | re.VERBOSE)


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def numerals(text: str) -> dict[str, str]:
    """Words from zero on, each with other forms after a slash, to their digits."""
    return {
        word: str(value) for value, names in enumerate(text.split()) for word in names.split("/")
    }


@dataclass(frozen=True)
class Lexicon:
    """Patterns are searched in running text, sets hold casefolded words.

    `kinds`: what a question asks for, the first pattern that is found wins; one with a group
    `head` says where the words for the thing asked begin ("which *port number* does …").
    `evidence`: what a sentence that answers such a question holds.
    `units`: what a question asks in, and what such a quantity looks like.
    """

    kinds: tuple[tuple[Kind, re.Pattern[str]], ...]
    evidence: Mapping[Kind, re.Pattern[str]]
    units: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = ()
    # After these words the thing asked for has been named.
    verbs: frozenset[str] = frozenset()
    # Words about the question itself: "what is the *name* of", "which *kind* of".
    shell: frozenset[str] = frozenset()
    # Small words that change what is asked: "before", "not", "most".
    operators: frozenset[str] = frozenset()
    numerals: Mapping[str, str] = field(default_factory=dict)
    naming_question: re.Pattern[str] | None = None
    naming_sentence: re.Pattern[str] | None = None
    # A sentence that opens so continues the one before it.
    continues: re.Pattern[str] | None = None

    # Referring back to earlier turns.
    pronouns: frozenset[str] = frozenset()
    belonging: frozenset[str] = frozenset()  # "of": before a pronoun that a noun belongs to
    possessives: frozenset[str] = frozenset()  # "its", "their": replaced with a genitive
    demonstratives: re.Pattern[str] | None = None  # group `reference`; "that" standing alone
    # A pronoun after these is not one ("it is raining"); found in the whole question.
    expletives: re.Pattern[str] | None = None
    determiners: frozenset[str] = frozenset()
    ordinals: Mapping[str, int] = field(default_factory=dict)  # "second" to 1; -1 is the last
    ordinal_reference: re.Pattern[str] | None = None  # groups `reference` and `ordinal`
    instead: re.Pattern[str] | None = None  # "and what about X?", group `topic`
    more: re.Pattern[str] | None = None  # "tell me more", "why?": the earlier question again
    genitive: str = "{}"

    # Question words and particles inside a run without spaces; elsewhere stop words do.
    unsaid: re.Pattern[str] | None = None

    # What is no question for the documents.
    greeting: re.Pattern[str] | None = None
    thanks: re.Pattern[str] | None = None
    recall: re.Pattern[str] | None = None  # "what did I ask before?"
    first_recalled: re.Pattern[str] | None = None
    compound: re.Pattern[str] | None = None  # where one question ends and another begins


def said(question: str, lexicon: Lexicon) -> str:
    """The question without the words that only make it a question."""
    return lexicon.unsaid.sub(" ", question) if lexicon.unsaid else question


@cache
def lexicon_of(language: str) -> Lexicon:
    from unified_flow.models.embedded import lexicon_en, lexicon_fr, lexicon_sv, lexicon_zh

    known = {
        "en": lexicon_en.LEXICON,
        "sv": lexicon_sv.LEXICON,
        "fr": lexicon_fr.LEXICON,
        "zh": lexicon_zh.LEXICON,
    }
    return known.get(language, lexicon_en.LEXICON)
