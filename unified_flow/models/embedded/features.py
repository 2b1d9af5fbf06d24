"""What speaks for a sentence as the answer: numbers, mostly 0..1, that ranking weighs.

Nothing here knows a subject: only the question's words, where they stand, and what an answer
of the kind asked for looks like.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache

from unified_flow.lib.text import words
from unified_flow.models.embedded.matching import kinship, matching_terms
from unified_flow.models.embedded.passages import Read, Sentence
from unified_flow.models.embedded.question import Question

_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w’'-]+")  # noqa: RUF001 -- typeset apostrophes
_ASIDE = re.compile(r"[\"“”«»(「]")
_ENTRY = re.compile(r"\W*(?::|—|–)\s")  # noqa: RUF001 -- dashes
_BRACKETED = re.compile(r"\((\w+)\)")
_KIN_COUNTS = 0.8  # of a match
_FEW_NEW_TERMS = 3  # a sentence that adds less only repeats the question


class Weights(dict[str, float]):
    """Terms to what they weigh; `share` is 0..1."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        super().__init__(weights)
        self.total = math.fsum(weights.values())  # whatever the order

    def share(self, terms: Iterable[str]) -> float:
        return math.fsum([self[t] for t in terms if t in self]) / self.total if self.total else 0.0


@dataclass(frozen=True, eq=False)
class Scene:
    """What all sentences of one search are measured against."""

    question: Question
    asked: frozenset[str]  # the question's terms
    weights: Weights  # of those: rarer ones weigh more
    core: Weights  # of what the question says about the thing asked for
    kin: Mapping[str, frozenset[str]]  # the question's terms to derivations of them
    words: frozenset[str]
    best_score: float


def scene(question: Question, reads: Sequence[Read]) -> Scene:
    """The weights come from the sentences that were found: they have to be told apart."""
    sentences = [sentence for read in reads for sentence in read.sentences]
    vocabulary = Counter(term for sentence in sentences for term in sentence.known)
    size = len(sentences)
    weights = {
        t: math.log(1 + (size - vocabulary[t] + 0.5) / (vocabulary[t] + 0.5))
        for t in question.terms
    }
    return Scene(
        question=question,
        asked=frozenset(question.terms),
        weights=Weights(weights),
        core=Weights({t: weights[t] for t in question.terms if t in question.core}),
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
    local: Weights  # a term in few sentences of the passage tells them apart
    asked: tuple[frozenset[str], ...]  # of each sentence, the question's terms in it
    earlier: tuple[frozenset[str], ...]  # of each sentence, those in any before it


def surroundings(scene: Scene, read: Read) -> Surroundings:
    asked = tuple(sentence.known & scene.asked for sentence in read.sentences)
    earlier = [frozenset[str]()]
    for each in asked:
        earlier.append(earlier[-1] | each)
    frequency = Counter(term for each in asked for term in each)
    local = {t: scene.weights[t] * math.log(1 + len(asked) / n) for t, n in frequency.items()}
    return Surroundings(read, frequency, Weights(local), asked, tuple(earlier))


def _part(found: Sized, of: Sized) -> float:
    return len(found) / len(of) if of else 0.0


@lru_cache(maxsize=4_096)
def _names(text: str, language: str) -> tuple[frozenset[str], ...]:
    found = (frozenset(matching_terms(m.group(), language)) for m in _NAME.finditer(text))
    return tuple(found)


def features(scene: Scene, around: Surroundings, sentence: Sentence) -> dict[str, float]:
    question, read, number = scene.question, around.read, sentence.number
    weights, core = scene.weights, scene.core
    matched = around.asked[number]
    missing = [t for t in question.terms if t not in matched]
    derived = [t for t in missing if not scene.kin[t].isdisjoint(sentence.known)]
    last = number + 1 == len(read.sentences)
    before = around.asked[number - 1].intersection(missing) if number else frozenset[str]()
    after = frozenset[str]() if last else around.asked[number + 1].intersection(missing)
    carried = before if sentence.continues else ()
    continued = () if last or not read.sentences[number + 1].continues else after
    new_terms = len(sentence.known) - len(matched)
    score = read.passage.score / scene.best_score
    return {
        "count": _part(matched, question.terms) + _KIN_COUNTS * _part(derived, question.terms),
        "core": core.share(matched),
        "local": around.local.share(matched),
        "only_here": core.share([t for t in matched if around.frequency[t] == 1]),
        "words": _part(scene.words.intersection(sentence.words), scene.words),
        "operators": _part(question.operators.intersection(sentence.words), question.operators),
        "focus": _part(question.focus & sentence.known, question.focus),
        "before": weights.share(before),
        "before_continued": core.share(carried),
        "after": weights.share(after),
        "after_continued": core.share(continued),
        "earlier": core.share(around.earlier[number].intersection(missing)),
        "heading": weights.share(read.heading.intersection(missing)),
        "passage": score,
        "passage_log": math.log(max(score, 1e-3)),
        "new_terms": math.log(1 + new_terms),
        "restates": float(new_terms < _FEW_NEW_TERMS),
        "aside": float(_ASIDE.search(sentence.text) is not None),
        **_kind_features(question, sentence, read.language),
    }


def _kind_features(question: Question, sentence: Sentence, language: str) -> dict[str, float]:
    """Whether the sentence holds what the kind of question asks for."""
    lexicon, kind, text = question.lexicon, question.kind, sentence.text
    looked_for = lexicon.answers.get(kind)
    shown = looked_for is not None and looked_for.search(text) is not None
    named = question.asks_for_name and lexicon.naming_sentence.search(text) is not None
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
        "defines": float(kind == "definition" and _defines(question, sentence, language)),
        "named": float(named),
    }


def _defines(question: Question, sentence: Sentence, language: str) -> bool:
    """ "A node is …", "Node: …", or "Quality of Service (QoS)": of this and nothing wider."""
    saying = question.lexicon.answers.get("definition")
    for looked_for in (saying, _ENTRY):
        match = looked_for.search(sentence.text) if looked_for else None
        if match and question.core == set(matching_terms(sentence.text[: match.start()], language)):
            return True
    bracketed = {word.casefold() for word in _BRACKETED.findall(sentence.text)}
    return not bracketed.isdisjoint(question.core)
