"""What is known of a language: how it asks, what answers look like, how it refers back.

Each language is a TOML file in `languages/`, named by its ISO 639-1 code; a new language is one
more file. In a pattern a space stands for white space of any length, a line break for nothing, and
case makes no difference. A language may leave any key out. A language
without a file is read with the English one: its patterns rarely match another's words.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

_FOLDER = Path(__file__).with_name("languages")
_DEFAULT = "en"

AnswerKind = Literal["person", "time", "place", "number", "reason", "manner", "definition", "thing"]
# The first that matches wins: "how many" is no "how", and "what year" no "what".
_ASKED_BY_WORD: tuple[AnswerKind, ...] = ("reason", "number", "person", "time", "place", "manner")
_ASKED_BY_NOUN: tuple[AnswerKind, ...] = ("time", "number", "place", "person")
_ASKED_LAST: tuple[AnswerKind, ...] = ("definition", "thing")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value


def _compiled(value: object) -> re.Pattern[str]:
    source = "".join(line.lstrip() for line in _text(value).splitlines()).replace(" ", r"\s+")
    try:
        return re.compile(source, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


def _numbered(value: object) -> dict[str, str]:
    """Words from zero on, each with other forms after a slash, to their digits."""
    numerals = enumerate(_text(value).split())
    return {word: str(number) for number, forms in numerals for word in forms.split("/")}


Pattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
# To be joined into larger patterns.
Alternatives = Annotated[str, BeforeValidator(lambda value: _compiled(value).pattern)]
# In lower case.
Words = Annotated[frozenset[str], BeforeValidator(lambda value: frozenset(_text(value).split()))]
Numerals = Annotated[dict[str, str], BeforeValidator(_numbered)]
_NOTHING = re.compile(r"(?!)")


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Phrases(_Table):
    """What the embedded model says in its own words."""

    nothing: str
    nearest: str
    nothing_for: str  # {question}
    quotes: str = ""  # how an answer of version 0.1 begins, which a replay checks anew
    remembered: str
    nothing_remembered: str
    cannot_remember: str
    cannot_read: str
    not_allowed: str
    no_reply: str
    no_secrets: str
    no_documents: str
    greeting: str
    thanks: str
    lines: str  # {source}
    no_matches: str  # {pattern}
    matches: str  # {pattern}
    no_files: str  # {pattern}
    files: str  # {pattern}
    unclear_reference: str  # {reference}
    no_content: str
    which_one: str  # {noun}, {names}
    other_language: str  # {languages} of the documents, ISO 639-1
    unread: str


class Lexicon(_Table):
    language: str

    stop_words: Words = frozenset()  # empty: the list of the package stopwordsiso
    abbreviations: Words = frozenset()  # without the last full stop
    closing_abbreviations: Words = frozenset()  # those that end a sentence as often as not
    # After these words the thing asked for has been named.
    verbs: Words = frozenset()
    # Words about the question itself: "what is the *name* of", "which *kind* of".
    shell: Words = frozenset()
    # Of a question that names what it is about otherwise: "how to *give* it a delay".
    light_words: Words = frozenset()
    # Small words that change what is asked: "before", "not", "most".
    operators: Words = frozenset()
    numerals: Numerals = {}
    ordinal_endings: Words = frozenset()  # after digits

    # What a question asks for. The group `head` says where the words for the thing asked begin
    # ("which *port number* does …"); in `which`, NOUN stands for the nouns of each kind.
    asks: dict[AnswerKind, Pattern] = {}
    which: Alternatives = ""
    nouns: dict[AnswerKind, Alternatives] = {}
    explanation: Pattern = _NOTHING  # that an explanation is asked for, though like a fact
    compound: Pattern = _NOTHING  # where one question ends and another begins
    # Question words and particles inside a run without spaces; elsewhere stop words do.
    unsaid: Pattern = _NOTHING

    # What a sentence that answers such a question holds.
    answers: dict[AnswerKind, Pattern] = {}
    continues: Pattern = _NOTHING  # a sentence that opens so continues the one before it
    refers: Pattern = _NOTHING  # one that only says where to read on: "See the guide."

    # Referring back to earlier turns.
    distinct_pronouns: bool = False  # none looks like an article
    pronouns: Words = frozenset()
    persons: Words = frozenset()  # pronouns that stand for a person
    determiners: Words = frozenset()
    auxiliaries: Words = frozenset()  # "How *do* nodes communicate": the verb comes last
    demonstratives: Pattern = _NOTHING  # group `reference`; "that" standing alone
    # A pronoun after these is not one ("it is raining"); found in the whole question.
    expletives: Pattern = _NOTHING
    this_noun: Pattern = _NOTHING  # "this burger": groups `reference` and, up to the end, `noun`
    the_noun: Pattern = _NOTHING  # "the hurricane", the same
    definite: Alternatives = ""
    narrows: Alternatives = ""  # behind such a noun: "the hurricane *that* …"
    at_hand: Words = frozenset()  # "this *project*", "this *time*": no earlier turn names it
    ordinal_reference: Pattern = _NOTHING  # "the second one", group `reference`
    more: Pattern = _NOTHING  # "tell me more", "why?": the earlier question again

    # What is no question for the documents.
    please: Alternatives = ""
    could_you: Alternatives = ""
    salutation: Alternatives = ""
    tell_me: Alternatives = ""  # what only makes a question polite
    greeting: Pattern = _NOTHING
    thanks: Pattern = _NOTHING
    signing_off: Pattern = _NOTHING  # behind a question: "Thanks in advance, Kim."
    about_user: Pattern = _NOTHING  # the person who asks
    memories: Pattern = _NOTHING  # all that is known of that person
    remember: Alternatives = ""
    that: Alternatives = ""

    # Files and tools.
    line: Alternatives = ""
    up_to: Alternatives = ""
    files: Alternatives = ""
    show_file: Pattern = _NOTHING
    find_text: Pattern = _NOTHING
    occurs: Pattern = _NOTHING
    list_files: Pattern = _NOTHING
    all_files: Pattern = _NOTHING
    call: Alternatives = ""
    the_tool: Alternatives = ""
    arguments: Alternatives = ""
    # Pages of the web: "According to URL, …", "What does URL say about …".
    page: Alternatives = ""
    conjunction: Alternatives = ""
    what: Alternatives = ""
    do: Alternatives = ""
    says: Alternatives = ""
    about: Alternatives = ""
    # Arithmetic: "what is", "calculate", "17 % of", "times".
    result_of: Alternatives = ""
    calculate: Alternatives = ""
    percent: Alternatives = ""
    of: Alternatives = ""
    signs: dict[Literal["**", "/", "*", "+", "-"], Alternatives] = {}

    # What an answer says of itself, and not from its sources.
    closing: Alternatives = ""
    of_the_answer: Words = frozenset()
    refusal: Pattern = _NOTHING  # that the sources do not say
    phrases: Phrases | None = None

    @cached_property
    def kinds(self) -> tuple[tuple[AnswerKind, re.Pattern[str]], ...]:
        """What a question asks for; the first pattern that is found wins."""
        named = {
            kind: re.compile(self.which.replace("NOUN", nouns), re.IGNORECASE)
            for kind, nouns in self.nouns.items()
        }
        return (
            *((kind, self.asks[kind]) for kind in _ASKED_BY_WORD if kind in self.asks),
            *((kind, named[kind]) for kind in _ASKED_BY_NOUN if kind in named),
            *((kind, self.asks[kind]) for kind in _ASKED_LAST if kind in self.asks),
        )


def read_lexicon(path: Path) -> Lexicon:
    """Raises ValueError that names file, key and fault."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return Lexicon.model_validate({"language": path.stem, **table})
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"{path}: {'; '.join(faults)}") from error


@cache
def languages() -> tuple[str, ...]:
    """The languages with a file, English first."""
    found = {path.stem for path in _FOLDER.glob("*.toml")}
    return (_DEFAULT, *sorted(found - {_DEFAULT}))


@cache
def lexicon_of(language: str) -> Lexicon:
    if language in languages():
        return read_lexicon(_FOLDER / f"{language}.toml")
    none = frozenset[str]()
    own = {"language": language, "stop_words": none, "light_words": none}
    return lexicon_of(_DEFAULT).model_copy(update={**own, "distinct_pronouns": False})


@cache
def lexicons() -> tuple[Lexicon, ...]:
    """The lexicon of every language, for a text that is too short to show its own."""
    return tuple(lexicon_of(language) for language in languages())


@cache
def any_language() -> Lexicon:
    """The words and alternatives of all languages, for what is too short to show its own."""
    joined: dict[str, frozenset[str] | str] = {}
    for name in Lexicon.model_fields:
        values = [value for each in lexicons() if (value := getattr(each, name))]
        if values and isinstance(values[0], frozenset):
            joined[name] = frozenset().union(*values)
        elif values and isinstance(values[0], str):
            joined[name] = f"(?:{'|'.join(values)})"
    return Lexicon.model_construct(None, **joined)


def phrases_of(language: str) -> Phrases:
    phrases = lexicon_of(language).phrases or lexicon_of(_DEFAULT).phrases
    assert phrases is not None
    return phrases
