"""Sentences in the order in which they answer a question, and whether any of them does; what
kind of answer it asks for, and which of its words name that or describe it.

No feature depends on a subject: they measure where the question's words occur and whether a
sentence looks like an answer of the kind asked for, mostly from 0 to 1. What each
weighs, and how that was fitted, is in `weights.toml`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from unified_flow.lib.text import language_of, words
from unified_flow.lib.text.language import CAPITAL_NOUNS, stop_words
from unified_flow.lib.text.lexicon import AnswerKind, Lexicon, lexicon_of
from unified_flow.models.embedded.excerpts import (
    Excerpt,
    Sentence,
    best_kinship,
    kinship,
    matching_terms,
)

_WEIGHTS = tomllib.loads(Path(__file__).with_name("weights.toml").read_text(encoding="utf-8"))
SENTENCE: dict[str, float] = _WEIGHTS["sentence"]
ANSWERABLE: dict[str, float] = _WEIGHTS["answerable"]

# The least probability of an answer. Chosen so that an unanswerable question is refused
# seven times in eight, and an answerable one three times in a hundred.
ENOUGH = 0.2
# Kinds of answers: those that are a word or two, and those that are known by their form.
FACTS = frozenset({"person", "time", "place", "number"})
_TOLD_BY_FORM = ("time", "number")
_KIN_COUNTS = 0.8  # of a match
_KIN_NEARBY = 0.7
_ENTRY = re.compile(r"\W*(?::|—|–)\s")  # noqa: RUF001 -- dashes
_BRACKETED = re.compile(r"\((\w+)\)")
# A name, a number or a term in code: what a question means exactly.
_EXACT = r"\b\w*[A-Z0-9_]\w*[A-Z0-9_]\w*|\b\d[\d,.]*\b|`[^`]+`"
_NAMES = re.compile(rf"(?<!^)\b[A-Z][\w'’-]*|{_EXACT}")  # noqa: RUF001
_NAMES_AMONG_CAPITALS = re.compile(_EXACT)
_FOCUS_WORDS = 3


@dataclass(frozen=True, eq=False)
class RankedSentence:
    """`probability` is that of this sentence to answer, provided that one of them does."""

    context: QuestionContext
    excerpt: Excerpt
    sentence: Sentence
    probability: float


def rank(question: ParsedQuestion, excerpts: Sequence[Excerpt]) -> list[RankedSentence]:
    """Best first; a tie keeps the order of the passages."""
    context = question_context(question, excerpts)
    measured = measure(context, excerpts)
    values = [
        sum(SENTENCE[name] * value for name, value in found.items()) for _, _, found in measured
    ]
    top = max(values, default=0.0)
    odds = [math.exp(value - top) for value in values]
    total = sum(odds)
    ranked = [
        RankedSentence(context, excerpt, sentence, each / total)
        for (excerpt, sentence, _), each in zip(measured, odds, strict=True)
    ]
    return sorted(ranked, key=lambda each: -each.probability)


def measure(
    context: QuestionContext, excerpts: Sequence[Excerpt]
) -> list[tuple[Excerpt, Sentence, dict[str, float]]]:
    return [
        (excerpt, sentence, features(context, around, sentence))
        for excerpt in excerpts
        for around in (passage_context(context, excerpt),)
        for sentence in excerpt.sentences
        # A lone word of the question ("* Services") names what is asked about and says nothing.
        if len(sentence.terms) > 1 or not sentence.terms <= context.asked
        # Code shows what the sentence before it says.
        if not sentence.states_nothing or excerpt.states_nothing
    ]


class TermWeights(dict[str, float]):
    """Terms to what they weigh; `share` is 0..1."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        super().__init__(weights)
        self.total = math.fsum(weights.values())  # whatever the order

    def share(self, terms: Iterable[str]) -> float:
        return math.fsum([self[t] for t in terms if t in self]) / self.total if self.total else 0.0


@dataclass(frozen=True, eq=False)
class QuestionContext:
    """What all sentences of one search are measured against."""

    question: ParsedQuestion
    asked: frozenset[str]  # the question's terms
    weights: TermWeights  # of those: rarer ones weigh more
    core: TermWeights  # of what the question says about the thing asked for
    kin: Mapping[str, frozenset[str]]  # the question's terms to derivations of them
    words: frozenset[str]
    best_score: float


def question_context(question: ParsedQuestion, excerpts: Sequence[Excerpt]) -> QuestionContext:
    """Terms are weighted by their frequency in the sentences found, which they distinguish."""
    sentences = [sentence for excerpt in excerpts for sentence in excerpt.sentences]
    vocabulary = Counter(term for sentence in sentences for term in sentence.terms)
    size = len(sentences)
    weights = {
        t: math.log(1 + (size - vocabulary[t] + 0.5) / (vocabulary[t] + 0.5))
        for t in question.terms
    }
    return QuestionContext(
        question=question,
        asked=frozenset(question.terms),
        weights=TermWeights(weights),
        core=TermWeights({t: weights[t] for t in question.terms if t in question.core}),
        kin={
            t: frozenset(other for other in vocabulary if other != t and kinship(t, other))
            for t in question.terms
        },
        words=frozenset(word.casefold() for word in words(question.text)),
        best_score=max([excerpt.passage.score for excerpt in excerpts] + [1e-6]),
    )


@dataclass(frozen=True, eq=False)
class PassageContext:
    """What a passage says as a whole, for the measure of its sentences."""

    excerpt: Excerpt
    frequency: Mapping[str, int]  # sentences of this passage that have the question's term
    local: TermWeights  # a term in few sentences of the passage weighs more
    asked: tuple[frozenset[str], ...]  # of each sentence, the question's terms in it
    earlier: tuple[frozenset[str], ...]  # of each sentence, those in any before it


def passage_context(context: QuestionContext, excerpt: Excerpt) -> PassageContext:
    asked = tuple(sentence.terms & context.asked for sentence in excerpt.sentences)
    earlier = [frozenset[str]()]
    for each in asked:
        earlier.append(earlier[-1] | each)
    frequency = Counter(term for each in asked for term in each)
    local = {t: context.weights[t] * math.log(1 + len(asked) / n) for t, n in frequency.items()}
    return PassageContext(excerpt, frequency, TermWeights(local), asked, tuple(earlier))


def _part(found: Sized, of: Sized) -> float:
    return len(found) / len(of) if of else 0.0


def features(
    context: QuestionContext, around: PassageContext, sentence: Sentence
) -> dict[str, float]:
    question, number, there = context.question, sentence.number, around.excerpt.sentences
    matched = around.asked[number]
    missing = [t for t in question.terms if t not in matched]
    derived = [t for t in missing if not context.kin[t].isdisjoint(sentence.terms)]
    beside = continued = 0.0
    for neighbour, later in ((number - 1, number), (number + 1, number + 1)):
        if 0 <= neighbour < len(there):
            share = context.weights.share(around.asked[neighbour].intersection(missing))
            beside += share
            continued += share * there[later].continues
    score = around.excerpt.passage.score / context.best_score
    return {
        "count": _part(matched, question.terms) + _KIN_COUNTS * _part(derived, question.terms),
        "local": around.local.share(matched),
        "only_here": context.core.share([t for t in matched if around.frequency[t] == 1]),
        "words": _part(context.words.intersection(sentence.words), context.words),
        "focus": _part(question.focus & sentence.terms, question.focus),
        "beside": beside,
        "continued": continued,
        "earlier": context.core.share(around.earlier[number].intersection(missing)),
        "passage": math.log(max(score, 1e-3)),
        "new_terms": math.log(1 + len(sentence.terms) - len(matched)),
        "kind": _of_the_kind(question, sentence, around.excerpt.language),
    }


def _of_the_kind(question: ParsedQuestion, sentence: Sentence, language: str) -> float:
    """Whether it holds what the kind of question asks for."""
    if question.kind == "definition":
        return float(_defines(question, sentence, language))
    looked_for = question.lexicon.answers.get(question.kind)
    return float(looked_for is not None and looked_for.search(sentence.text) is not None)


def _defines(question: ParsedQuestion, sentence: Sentence, language: str) -> bool:
    """ "A node is …", "Node: …", or "Quality of Service (QoS)": of this and nothing wider."""
    saying = question.lexicon.answers.get("definition")
    for looked_for in (saying, _ENTRY):
        match = looked_for.search(sentence.text) if looked_for else None
        if match and question.core == set(matching_terms(sentence.text[: match.start()], language)):
            return True
    bracketed = {word.casefold() for word in _BRACKETED.findall(sentence.text)}
    return not bracketed.isdisjoint(question.core)


def answerability_features(best: RankedSentence) -> dict[str, float]:
    """0..1 each.

    `passage`: how much of the question the passage answers by BM25, where a word that no
    document has counts against it (retrieval's score). `nearby`: the question's statements in
    the sentence, its neighbours and its heading. `names`: its names and numbers in the passage.
    Both are shares of what the terms weigh: a word that most sentences have is no evidence.
    `kind`: whether the sentence or a neighbour holds a time or a number where one is asked for.
    """
    question, excerpt, number = best.context.question, best.excerpt, best.sentence.number
    neighbours = excerpt.sentences[max(0, number - 1) : number + 2]
    near = excerpt.heading.union(*(s.terms for s in neighbours))
    looked_for = (
        question.lexicon.answers.get(question.kind) if question.kind in _TOLD_BY_FORM else None
    )
    weights = best.context.weights
    names = question.names & frozenset(question.terms)
    return {
        "passage": excerpt.passage.score,
        "nearby": _presence(question.core, near, weights),
        "names": _presence(names, excerpt.terms, weights) if names else 1.0,
        "kind": float(looked_for is None or any(looked_for.search(s.text) for s in neighbours)),
    }


def _presence(terms: Iterable[str], known: frozenset[str], weights: Mapping[str, float]) -> float:
    """The share of their weight."""
    of = {term: weights[term] for term in terms}
    there = {term for term in of if term in known}
    akin = {term for term in of if term not in there and best_kinship(term, known)}
    total = math.fsum(of.values())
    found = math.fsum([of[t] for t in there] + [_KIN_NEARBY * of[t] for t in akin])
    return found / total if total else 0.0


def answerability(best: RankedSentence) -> float:
    """The probability that the passages hold an answer."""
    found = answerability_features(best)
    value = ANSWERABLE["bias"] + sum(ANSWERABLE[name] * found[name] for name in found)
    return 1 / (1 + math.exp(-value))


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


def parse_question(text: str, language: str | None = None) -> ParsedQuestion:
    """`language` is that of the documents where they differ: terms are stemmed in it."""
    asked_in = language_of(text)
    return _parsed(text, asked_in, language or asked_in)


@lru_cache(maxsize=64)
def _parsed(text: str, asked_in: str, language: str) -> ParsedQuestion:
    lexicon = lexicon_of(asked_in)
    kind, focus_words = _kind(text, lexicon, asked_in)
    terms = tuple(dict.fromkeys(matching_terms(lexicon.unsaid.sub(" ", text), language)))
    focus = {t for word in focus_words for t in matching_terms(word, language)}
    names = _NAMES_AMONG_CAPITALS if asked_in in CAPITAL_NOUNS else _NAMES
    return ParsedQuestion(
        text=text,
        language=language,
        kind=kind,
        terms=terms,
        core=frozenset(terms) - focus - _shell(asked_in, language) or frozenset(terms),
        focus=frozenset(focus),
        names=frozenset(
            t for m in names.finditer(text) for t in matching_terms(m.group(), language)
        ),
    )


@cache
def _shell(asked_in: str, language: str) -> frozenset[str]:
    shell = lexicon_of(asked_in).shell
    return frozenset(t for word in shell for t in matching_terms(word, language))


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
