"""Exact match and F1 as SQuAD defines them (Rajpurkar et al. 2016 and 2018, evaluate-v2.0.py)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without punctuation and articles, on one line."""
    bare = "".join(c for c in text.lower() if c not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact(response: str, answers: Sequence[str]) -> float:
    return float(any(normalised(response) == normalised(answer) for answer in answers))


def f1(response: str, answers: Sequence[str]) -> float:
    """The best over the gold answers of the F1 of words in common."""
    return max(
        (_f1(normalised(response).split(), normalised(a).split()) for a in answers), default=0.0
    )


def contained(text: str, answers: Sequence[str]) -> bool:
    """Whether a gold answer stands in the text, as written or as SQuAD normalises both; never as a
    part of a longer word or number."""
    plain = f" {normalised(text)} "
    return any(
        _stands(answer, text) or (bool(own := normalised(answer)) and f" {own} " in plain)
        for answer in answers
        if answer
    )


def _stands(answer: str, text: str) -> bool:
    # Of ASCII alone: scripts without spaces have no gaps between words.
    before, after = r"(?<![A-Za-z0-9])(?<!\d[.,])", r"(?![A-Za-z0-9])(?![.,]\d)"
    return bool(re.search(rf"{before}{re.escape(answer)}{after}", text))


def _f1(said: list[str], gold: list[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    common = sum((Counter(said) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(gold)
    return 2 * precision * recall / (precision + recall)
