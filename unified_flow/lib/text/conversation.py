"""What a conversation is about, and how much a search heeds it.

The words of the last questions and the commonest of the last answer count, the older the less.
A question of its own counts 1 a word. A follow-up leaves out what both sides know, a change of
subject must not be held to it. The search for the question alone tells them apart: where it has a
clear winner the question says enough, and where nothing that it finds speaks of the conversation,
the subject has changed. All weights are set by hand and were best on half of MTRAG-UN
(`benchmarks/conversations.py`), where a fifth more or less of each changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from unified_flow.lib.text.language import language_of
from unified_flow.lib.text.segmentation import words
from unified_flow.lib.text.terms import terms

_QUESTIONS = 4
_OF_A_QUESTION = 0.35
_A_TURN_EARLIER = 0.7
_OF_THE_ANSWER = 0.1
_WORDS_OF_A_QUESTION = 32
_WORDS_OF_THE_ANSWER = 8
_ON_SUBJECT = 0.08  # the share of the conversation that a passage on its subject holds at least
_REACHED = 0.9  # of the conversation's weight in what a passage could reach: none is on all of it
LOOKED_AT = 8  # passages of the plain search


def conversation_words(turns: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Words of a conversation with their weights. `turns`: (question, answer), oldest first."""
    found: dict[str, float] = {}
    for age, (question, _) in enumerate(reversed(turns[-_QUESTIONS:])):
        weight = round(_OF_A_QUESTION * _A_TURN_EARLIER**age, 4)
        for word in _content(question)[:_WORDS_OF_A_QUESTION]:
            found.setdefault(word.casefold(), weight)
    for _, answer in turns[-1:]:
        for word in _commonest(_content(answer)):
            found.setdefault(word.casefold(), _OF_THE_ANSWER)
    return found


def _content(text: str) -> list[str]:
    language = language_of(text)
    return [word for word in words(text) if terms(word, language)]


def _commonest(found: list[str]) -> list[str]:
    """Names and numbers count once more."""
    counts = Counter(found)
    ordered = sorted(counts, key=lambda word: (-counts[word] - (not word[0].islower()), -len(word)))
    return ordered[:_WORDS_OF_THE_ANSWER]


def heed(scores: Sequence[float], shares: Sequence[float]) -> float:
    """0..1. `scores` are those of the search for the question alone, best first; `shares` say how
    much of the conversation its best passages hold."""
    if not scores:
        return 1.0
    second = scores[1] if len(scores) > 1 else 0.0
    lead = (scores[0] - second) / scores[0] if scores[0] > 0 else 0.0
    return (1 - lead) * min(1.0, max(shares, default=0.0) / _ON_SUBJECT)


def with_conversation(
    question: Mapping[str, float], conversation: Mapping[str, float], heeded: float
) -> tuple[dict[str, float], float]:
    """What each term weighs in a search for both, and what a passage on both weighs."""
    added = {t: weight * heeded for t, weight in conversation.items() if t not in question}
    return {**question, **added}, sum(question.values()) + _REACHED * sum(added.values())
