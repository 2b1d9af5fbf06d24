"""What a conversation is about: the words of its earlier turns, weighed.

The words of the last questions and the commonest of the last answer count, the older the less.
A question of its own counts 1 a word. The weights are set by hand and were best on half of
MTRAG-UN (`benchmarks/conversations.py`), where a fifth more or less of each changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unified_flow.lib.text.language import language_of
from unified_flow.lib.text.segmentation import words
from unified_flow.lib.text.terms import terms

_QUESTIONS = 4
_OF_A_QUESTION = 0.35
_A_TURN_EARLIER = 0.7
_OF_THE_ANSWER = 0.1
_WORDS_OF_A_QUESTION = 32
_WORDS_OF_THE_ANSWER = 8


def conversation_words(turns: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Each word to its weight. `turns` are (question, answer), oldest first."""
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
