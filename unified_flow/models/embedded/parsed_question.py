"""What kind of answer a question asks for, and which of its words name it or describe it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from unified_flow.lib.text import language_of, words
from unified_flow.lib.text.language import CAPITAL_NOUNS, stop_words
from unified_flow.lib.text.lexicon import AnswerKind, Lexicon, lexicon_of
from unified_flow.models.embedded.excerpts import matching_terms

# A name, a number or a term in code: what a question means exactly.
_EXACT = r"\b\w*[A-Z0-9_]\w*[A-Z0-9_]\w*|\b\d[\d,.]*\b|`[^`]+`"
_NAMES = re.compile(rf"(?<!^)\b[A-Z][\w'’-]*|{_EXACT}")  # noqa: RUF001
_NAMES_AMONG_CAPITALS = re.compile(_EXACT)
_FOCUS_WORDS = 3


@dataclass(frozen=True)
class ParsedQuestion:
    """`terms` in order, without repeats. `focus` is the thing asked for ("which *port*"), whose
    words an answer need not repeat; `core` is what the question says about it."""

    text: str
    language: str
    kind: AnswerKind
    terms: tuple[str, ...]
    core: frozenset[str]
    focus: frozenset[str]
    names: frozenset[str]

    @property
    def lexicon(self) -> Lexicon:
        return lexicon_of(self.language)


@lru_cache(maxsize=64)
def parse_question(text: str, language: str | None = None) -> ParsedQuestion:
    """`language` is that of the documents where they differ: terms are stemmed in it."""
    asked_in = language_of(text)
    lexicon = lexicon_of(asked_in)
    language = language or asked_in
    kind, focus_words = _kind(text, lexicon, asked_in)
    terms = tuple(dict.fromkeys(matching_terms(lexicon.unsaid.sub(" ", text), language)))
    focus = {t for word in focus_words for t in matching_terms(word, language)}
    shell = {t for word in lexicon.shell for t in matching_terms(word, language)}
    names = _NAMES_AMONG_CAPITALS if asked_in in CAPITAL_NOUNS else _NAMES
    return ParsedQuestion(
        text=text,
        language=language,
        kind=kind,
        terms=terms,
        core=frozenset(t for t in terms if t not in focus and t not in shell) or frozenset(terms),
        focus=frozenset(focus),
        names=frozenset(
            t for m in names.finditer(text) for t in matching_terms(m.group(), language)
        ),
    )


def _kind(text: str, lexicon: Lexicon, language: str) -> tuple[AnswerKind, list[str]]:
    for kind, looked_for in lexicon.kinds:
        if (match := looked_for.search(text)) is not None:
            if match.groupdict().get("head") is None:
                return kind, []
            return kind, _focus(text[match.start("head") :], lexicon, language)
    return "thing", []


def _focus(text: str, lexicon: Lexicon, language: str) -> list[str]:
    """The words for the thing asked: up to the verb, at most a few."""
    found: list[str] = []
    for word in words(text.casefold()):
        if word in lexicon.verbs or len(found) == _FOCUS_WORDS:
            break
        if word in stop_words(language):
            # "what type of port": the port is asked for, the type is the question's shell.
            if found and not all(each in lexicon.shell for each in found):
                break
            continue
        found.append(word)
    return found
