"""What speaks for a sentence as the answer: numbers, mostly 0..1, that ranking weighs.

Nothing here knows a subject: only the question's words, where they stand, and what an answer
of the kind asked for looks like.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from unified_flow.models.embedded.matching import kinship, matching_terms
from unified_flow.models.embedded.passages import Read, Sentence
from unified_flow.models.embedded.question import Question
from unified_flow.text import words

_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w’'-]+")  # noqa: RUF001 -- typeset apostrophes
_ASIDE = re.compile(r"[\"“”«»(「]")
_BRACKETED = re.compile(r"\((\w+)\)")
_KIN_COUNTS = 0.8  # of a match
_FEW_NEW_TERMS = 3  # a sentence that adds less only repeats the question


@dataclass(frozen=True, eq=False)
class Scene:
    """What all sentences of one search are measured against."""

    question: Question
    weights: Mapping[str, float]  # of the question's terms: rarer ones weigh more
    kin: Mapping[str, frozenset[str]]  # the question's terms to derivations of them
    words: frozenset[str]
    best_score: float


def scene(question: Question, reads: Sequence[Read]) -> Scene:
    """The weights come from the sentences that were found: they have to be told apart."""
    sentences = [sentence for read in reads for sentence in read.sentences]
    vocabulary = Counter(term for sentence in sentences for term in sentence.known)
    size = len(sentences)
    return Scene(
        question=question,
        weights={
            t: math.log(1 + (size - vocabulary[t] + 0.5) / (vocabulary[t] + 0.5))
            for t in question.terms
        },
        kin={
            t: frozenset(other for other in vocabulary if other != t and kinship(t, other))
            for t in question.terms
        },
        words=frozenset(word.casefold() for word in words(question.text)),
        best_score=max([read.passage.score for read in reads] + [1e-6]),
    )


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a passage says as a whole, for the measure of its sentences."""

    read: Read
    frequency: Mapping[str, int]  # sentences of this passage that have the question's term


def surroundings(scene: Scene, read: Read) -> Surroundings:
    wanted = frozenset(scene.question.terms)
    return Surroundings(read, Counter(t for s in read.sentences for t in s.known & wanted))


def _share(terms: Iterable[str], weights: Mapping[str, float]) -> float:
    total = sum(weights.values())
    return sum(weights[t] for t in terms if t in weights) / total if total else 0.0


def _part(found: Iterable[object], of: Sequence[object] | frozenset[str]) -> float:
    return sum(1 for _ in found) / len(of) if of else 0.0


@lru_cache(maxsize=4_096)
def _names(text: str, language: str) -> tuple[frozenset[str], ...]:
    found = (frozenset(matching_terms(m.group(), language)) for m in _NAME.finditer(text))
    return tuple(found)


def features(scene: Scene, around: Surroundings, sentence: Sentence) -> dict[str, float]:
    question, read = scene.question, around.read
    neighbours = read.sentences
    number = sentence.number
    core = {t: scene.weights[t] for t in question.core}
    missing = [t for t in question.terms if t not in sentence.known]
    matches = len(question.terms) - len(missing)
    derived = sum(1 for t in missing if not scene.kin[t].isdisjoint(sentence.known))
    before = neighbours[number - 1].known if number else frozenset[str]()
    after = neighbours[number + 1] if number + 1 < len(neighbours) else None
    earlier = frozenset[str]().union(*(s.known for s in neighbours[:number]))
    # Only what the passage has can tell its sentences apart, and what few of them have best.
    local = {
        t: scene.weights[t] * math.log(1 + len(neighbours) / n) for t, n in around.frequency.items()
    }
    score = read.passage.score / scene.best_score
    return {
        "count": (matches + _KIN_COUNTS * derived) / max(1, len(question.terms)),
        "core": _share((t for t in core if t in sentence.known), core),
        "local": _share((t for t in local if t in sentence.known), local),
        "only_here": _share(
            (t for t in core if t in sentence.known and around.frequency[t] == 1), core
        ),
        "words": _part(scene.words.intersection(sentence.words), scene.words),
        "operators": _part(question.operators.intersection(sentence.words), question.operators),
        "focus": _part(question.focus & sentence.known, question.focus),
        "before": _share((t for t in missing if t in before), scene.weights),
        "before_continued": (
            _share((t for t in missing if t in before), core) if sentence.continues else 0.0
        ),
        "after": _share((t for t in missing if after and t in after.known), scene.weights),
        "after_continued": (
            _share((t for t in missing if t in after.known), core)
            if after and after.continues
            else 0.0
        ),
        "earlier": _share((t for t in missing if t in earlier), core),
        "heading": _share((t for t in missing if t in read.heading), scene.weights),
        "passage": score,
        "passage_log": math.log(max(score, 1e-3)),
        "new_terms": math.log(1 + len(sentence.known) - matches),
        "restates": float(len(sentence.known) - matches < _FEW_NEW_TERMS),
        "aside": float(_ASIDE.search(sentence.text) is not None),
        **_kind_features(question, sentence, read.language),
    }


def _kind_features(question: Question, sentence: Sentence, language: str) -> dict[str, float]:
    """Whether the sentence holds what the kind of question asks for."""
    lexicon, kind, text = question.lexicon, question.kind, sentence.text
    looked_for = lexicon.evidence.get(kind)
    shown = looked_for is not None and looked_for.search(text) is not None
    naming = lexicon.naming_sentence
    named = question.asks_for_name and naming is not None and naming.search(text) is not None
    someone = kind == "person" and any(
        not name <= set(question.terms) for name in _names(text, language)
    )
    return {
        "time": float(kind == "time" and shown),
        "number": float(kind == "number" and shown),
        "unit": float(question.unit is not None and question.unit.search(text) is not None),
        "person": float(someone),
        "person_pronoun": float(kind == "person" and sentence.continues),
        "place": float(kind == "place" and shown),
        "reason": float(kind == "reason" and shown),
        "defines": float(kind == "definition" and _defines(question, sentence, shown)),
        "named": float(named),
    }


def _defines(question: Question, sentence: Sentence, shown: bool) -> bool:
    """ "A node is …", or "Quality of Service (QoS)"."""
    if shown and sentence.terms and sentence.terms[0] in question.core:
        return True
    bracketed = {word.casefold() for word in _BRACKETED.findall(sentence.text)}
    return not bracketed.isdisjoint(question.core)
