"""Words that refer back ("it", "why?", "this burger", "the hurricane") and what they refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from unified_flow.lib.text import language_of, terms
from unified_flow.lib.text.language import stop_words
from unified_flow.lib.text.lexicon import Lexicon, any_language, lexicon_of
from unified_flow.lib.text.segmentation import UNSPACED
from unified_flow.models.embedded.excerpts import found_passages
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import PriorTurn, ToolResult

_TOKEN = re.compile(r"\w+")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_ENDS = "?？!。. "  # noqa: RUF001 -- Chinese marks
_MOST_REFERENCES = 4
_LONGEST_TOPIC = 200  # characters
_ENOUGH_OF_ITS_OWN = 3  # content words before a pronoun: its antecedent is among them
_MARKED = re.compile(r"`([^`]+)`|\"([^\"]{2,60})\"|“([^”]{2,60})”|«\s*([^»]{2,60}?)\s*»")
_LONGEST_NOUN = 3  # words
_EARLIER_CLAUSE = re.compile(r"[,;:.?!]\s")
_EARLIER_SENTENCE = re.compile(r".*[.?!]\s", re.DOTALL)
_FEWEST_NAMED = 3  # things, of as many documents
_CANDIDATES_SHOWN = 4
_OWN_NAME = re.compile(r"[`\"“”«»\d/_]|\w[.:]\w")


@dataclass(frozen=True)
class Resolution:
    status: Literal["not_needed", "resolved", "failed"]
    query: str
    references: tuple[str, ...] = ()
    stands_for: str | None = None


def resolve(query: str, history: Sequence[PriorTurn]) -> Resolution:
    lexicon = lexicon_of(language_of(query))
    return (
        _more_of_the_same(query, history, lexicon)
        or _pronouns_resolved(query, history, lexicon)
        or _unnamed(query, history, lexicon)
        or Resolution("not_needed", query)
    )


def _more_of_the_same(
    query: str, history: Sequence[PriorTurn], lexicon: Lexicon
) -> Resolution | None:
    """ "Why?", "tell me more": the last question that is none of these, with this to it."""
    if not lexicon.more.match(query):
        return None
    wish = query.strip(_ENDS)
    for place in reversed(range(len(history))):
        asked = history[place].question
        if not lexicon_of(language_of(asked)).more.match(asked):
            earlier = resolve(asked, history[:place]).query
            return Resolution("resolved", f"{wish}: {earlier}", (wish,), earlier)
    return Resolution("failed", query, (wish,))


def _pronouns_resolved(
    query: str, history: Sequence[PriorTurn], lexicon: Lexicon
) -> Resolution | None:
    """Pronouns and "that" without an antecedent in the question itself."""
    spans = _pronouns(query, lexicon)[:_MOST_REFERENCES]
    spans += [
        m.span("reference")
        for m in lexicon.demonstratives.finditer(query)
        if not _said_before(query[: m.start("reference")], lexicon)
    ]
    spans = sorted(spans)[:_MOST_REFERENCES]
    if not spans:
        return None
    references = tuple(query[start:end] for start, end in spans)
    topic = _topic(history, references)
    named = names_of(query) or _OWN_NAME.search(query) or _says_enough(query, lexicon)
    if topic is None and not history and named and not _has_person(references):
        return None  # "Does it work on FreeBSD?": "it" is what the documents are about
    if topic is None:
        return Resolution("failed", query, references)
    topic = topic[:_LONGEST_TOPIC]
    return Resolution("resolved", f"{query} ({topic})", references, topic)


def _unnamed(query: str, history: Sequence[PriorTurn], lexicon: Lexicon) -> Resolution | None:
    """ "This burger", if neither the question nor an earlier turn has named one; "the second
    one", for answers are no lists."""
    if ordinal := lexicon.ordinal_reference.search(query):
        return Resolution("failed", query, (ordinal["reference"],))
    match = lexicon.this_noun.search(query)
    if match is None or _MARKED.search(query):
        return None
    before = query[: match.start()]
    noun = noun_phrase(match["noun"], lexicon)
    verb_first = any_language().auxiliaries | lexicon.verbs
    opening = _TOKEN.findall(before.casefold())
    alone = len(opening) == 1 and noun == _TOKEN.findall(match["noun"])
    if set(opening[-1:]) & verb_first and (len(noun) > 1 or alone):
        noun = noun[:-1]  # "does this court publish", "is this possible"
    if not noun or not lexicon.at_hand.isdisjoint(map(str.casefold, noun)):
        return None
    if any(word.isupper() or "_" in word for word in noun):
        return None  # "this cryptic __VIEWSTATE" is named
    if (clause := _EARLIER_CLAUSE.search(before)) and terms(before[: clause.start()]):
        return None
    told = " ".join([before, *(f"{turn.question} {turn.answer}" for turn in history)])
    if not set(terms(told)).isdisjoint(terms(" ".join(noun), lexicon.language)):
        return None
    reference = query[match.start("reference") : match.start("noun")] + " ".join(noun)
    return Resolution("failed", query, (reference,))


def noun_phrase(text: str, lexicon: Lexicon) -> list[str]:
    """The content words that it opens with, at most a few."""
    found: list[str] = []
    for word in _TOKEN.findall(text):
        if not _names_something(word, lexicon) or len(found) == _LONGEST_NOUN:
            break
        found.append(word)
    return found


def _pronouns(query: str, lexicon: Lexicon) -> list[tuple[int, int]]:
    if _UNSPACED.search(query):
        listed = "|".join(sorted(lexicon.pronouns, key=len, reverse=True))
        found = re.search(listed, query) if listed else None
        # In Chinese, what precedes the pronoun is its antecedent more often than not.
        return [found.span()] if found and not terms(query[: found.start()]) else []
    expletive = [m.span() for m in lexicon.expletives.finditer(query)]
    tokens = list(_TOKEN.finditer(query))
    content = sum(_is_content(t.group(), lexicon) for t in tokens)
    if not lexicon.distinct_pronouns and content > _ENOUGH_OF_ITS_OWN:
        return []  # articles and pronouns look alike: only a short question needs one
    found_spans = []
    for place, token in enumerate(tokens):
        if token.group().casefold() not in lexicon.pronouns:
            continue
        inside = any(start <= token.start() < end for start, end in expletive)
        if not inside and not _has_antecedent(tokens[:place], lexicon):
            found_spans.append(token.span())
    return found_spans


def _is_content(word: str, lexicon: Lexicon) -> bool:
    plain = word.casefold()
    return not (
        plain in stop_words(lexicon.language) or plain in lexicon.verbs or plain in lexicon.pronouns
    )


def _has_antecedent(before: Sequence[re.Match[str]], lexicon: Lexicon) -> bool:
    """Whether a noun precedes the pronoun, as far as its surroundings tell."""
    content = 0
    for place, token in enumerate(before):
        word = token.group()
        if not _is_content(word, lexicon):
            continue
        content += 1
        previous = before[place - 1].group().casefold() if place else ""
        if (
            (place and word[0].isupper())
            or previous in lexicon.determiners | lexicon.verbs | lexicon.shell
            or content >= _ENOUGH_OF_ITS_OWN
        ):
            return True
    return False


def _said_before(opening: str, lexicon: Lexicon) -> bool:
    """Whether an earlier sentence of the question says what it is about: "I want to run it on each
    save. How do I do that?" """
    earlier = _EARLIER_SENTENCE.match(opening)
    return earlier is not None and _says_enough(earlier.group(), lexicon)


def _says_enough(text: str, lexicon: Lexicon) -> bool:
    """Whether so many of its words have a meaning that they say what it is about."""
    found = sum(_is_content(word, lexicon) for word in _TOKEN.findall(text))
    return found >= _ENOUGH_OF_ITS_OWN


def _topic(history: Sequence[PriorTurn], references: Sequence[str]) -> str | None:
    """What the latest question that names anything is about; for he and she, a name."""
    for turn in reversed(history):
        lexicon = lexicon_of(language_of(turn.question))
        if _has_person(references) and (names := names_of(turn.question)):
            return max(names, key=len)
        if _pronouns(turn.question, lexicon):
            continue
        topic = topic_of(turn.question, lexicon)
        if topic is not None:
            return topic
    return None


def _has_person(references: Sequence[str]) -> bool:
    return not any_language().persons.isdisjoint(map(str.casefold, references))


def topic_of(question: str, lexicon: Lexicon) -> str | None:
    """What is marked in it, else its longest name, else all that names something, from the first
    such word behind a determiner on; None if nothing does."""
    if marked := _MARKED.search(question):
        return next(group for group in marked.groups() if group)
    if _UNSPACED.search(question):
        return lexicon.unsaid.sub(" ", question).strip(_ENDS) or None
    if names := names_of(question):
        return max(names, key=len)
    tokens = list(_TOKEN.finditer(question))
    named = [t for t in tokens if _names_something(t.group(), lexicon)]
    if not named:
        return None
    determined = (
        each
        for before, each in pairwise(tokens)
        if each in named and before.group().casefold() in lexicon.determiners
    )
    return question[next(determined, named[0]).start() : named[-1].end()]


def names_of(text: str) -> list[str]:
    """Runs of capitalised words that do not open a sentence alone."""
    runs = re.findall(r"(?:[A-ZÅÄÖÉÈ][\w'’-]*\s+)*[A-ZÅÄÖÉÈ][\w'’-]*", text)  # noqa: RUF001
    openings = re.findall(r"(?:\A|[.?!]\s)\W*(\w+)", text)
    first = openings[0] if openings else ""
    if not terms(first):
        runs = [run.removeprefix(f"{first} ") for run in runs]  # "Can I"
    runs = [run for run in runs if run not in (first, "I")]
    return [run for run in runs if run.split()[0] not in openings or terms(run)]


def _names_something(word: str, lexicon: Lexicon) -> bool:
    return _is_content(word, lexicon) and word.casefold() not in lexicon.shell


def things_meant(
    question: str, results: Sequence[ToolResult], earlier: Iterable[str]
) -> tuple[str, list[str]] | None:
    """(the noun, names of what it may mean), best first; None if it is clear enough: "the
    hurricane" where documents tell of four. `earlier` are words of the conversation.

    Asking back costs a turn, so it takes plain signs: the question names nothing else, the
    conversation has not spoken of it, at least three documents name one each, and fewer speak of
    "the hurricane" themselves ("the admin" is one thing, whatever it is called with).
    """
    lexicon = lexicon_of(language_of(question))
    if _OWN_NAME.search(question) or names_of(question):
        return None
    narrowed = re.compile(rf"\W*(?:{lexicon.narrows})\b", re.IGNORECASE)
    known = set(terms(" ".join(earlier), lexicon.language))
    for match in lexicon.the_noun.finditer(question):
        noun = " ".join(noun_phrase(match["noun"], lexicon))
        own = known.intersection(terms(noun, lexicon.language))
        if not noun or own or narrowed.match(match["noun"], len(noun)):
            continue
        if len(named := _names_of_kind(noun, found_passages(results), lexicon)) >= _FEWEST_NAMED:
            return noun, named[:_CANDIDATES_SHOWN]
    return None


def _names_of_kind(noun: str, passages: Sequence[Passage], lexicon: Lexicon) -> list[str]:
    """ "Hurricane Isaac", "VA home loan": one of each document, none twice."""
    kind = rf"(?i:{re.escape(noun)})"
    name = re.compile(rf"\b(?:(?:[A-Z][\w'-]*[ ]){{1,3}}{kind}|{kind}[ ][A-Z][\w'-]*)\b")
    alone = re.compile(rf"\b{lexicon.definite}\s+{kind}\b", re.IGNORECASE)
    found: dict[str, str] = {}
    as_one = {p.path for p in passages if alone.search(p.text)}
    for passage in passages:
        for match in name.finditer(f"{passage.heading}\n{passage.text}"):
            first = match.group().partition(" ")[0].casefold()
            if first not in stop_words(lexicon.language) | lexicon.shell | lexicon.operators:
                found.setdefault(passage.path, match.group())
                break
    distinct = {each.casefold().replace("'s", ""): each for each in found.values()}
    return list(distinct.values()) if len(as_one) < len(found) else []
