"""Which names say by themselves that their value is a secret."""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from interventions.secrets.rules import words

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_,.]{0,20}[ ]?(?:%|[A-Za-z]{1,3})?|inf|nan)\Z")
_WORD = re.compile(r"[A-Za-z]{1,20}\Z")
_LONGEST = 200


class NameKind(Enum):
    """What a name says of its value."""

    PLAIN = "nothing"
    MEASURE = "a number, or one word in its place"
    NUMBER = "a number, else a secret"
    SECRET = "a secret"


_MEASURES, _DESCRIBERS, _TIMES = words("measures"), words("describers"), words("times")
_ASKERS, _OF_TEXT, _DESCRIBED = words("askers"), words("of_text"), words("described_secrets")
_SECRET_ENDINGS = tuple(words("secret_endings"))


def hides(name: NameKind, text: str) -> bool:
    """Whether a text under such a name is to be hidden."""
    if name is NameKind.PLAIN:
        return False
    if name is NameKind.SECRET:
        return True
    return not (_NUMBER.match(text) or (name is NameKind.MEASURE and _WORD.match(text)))


def name_kind(key: str) -> NameKind:
    if len(key) > 2 * _LONGEST:
        key = f"{key[:_LONGEST]} {key[-_LONGEST:]}"
    return _read(key)


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


_WEAK_WORDS, _SECRET_PAIRS = words("weak"), words("secret_pairs")
_SECRET_WORDS = frozenset(map(_without_accents, words("secret")))


@lru_cache(maxsize=8192)
def _read(key: str) -> NameKind:
    words = [word.lower() for word in _WORDS.findall(_without_accents(key)) if not word.isdigit()]
    strong = _is_strong(words)
    if not strong and _WEAK_WORDS.isdisjoint(words):
        return NameKind.PLAIN
    last = len(words)
    while last > 1 and words[last - 1] in _TIMES:
        last -= 1
    if _is_described(words[:last]):
        return NameKind.PLAIN
    if strong:
        counts = words[last - 1] in _MEASURES or words == ["pass"]  # `pass: 3, fail: 0`
        return NameKind.NUMBER if counts else NameKind.SECRET
    if not _OF_TEXT.isdisjoint(words):
        return NameKind.PLAIN
    measured = not _MEASURES.isdisjoint(words)
    if "tokens" in words:
        return NameKind.MEASURE if measured else NameKind.NUMBER
    if measured:
        return NameKind.MEASURE if words[last - 1] in _MEASURES else NameKind.NUMBER
    return NameKind.SECRET


def _is_described(words: list[str]) -> bool:
    """`password_required`, `has_password`: about a secret."""
    if len(words) > 1 and words[0] in _ASKERS:
        return True
    return words[-1] in _DESCRIBERS and "-".join(words[-2:]) not in _DESCRIBED


def _is_strong(words: list[str]) -> bool:
    strong = (word for word in words if word not in _WEAK_WORDS)
    if not _SECRET_WORDS.isdisjoint(words) or any(w.endswith(_SECRET_ENDINGS) for w in strong):
        return True
    if any("-".join(pair) in _SECRET_PAIRS for pair in pairwise(words)):
        return True
    # `APIkey` has no seam where one is expected.
    joined = "".join(words)
    return joined.endswith(_SECRET_ENDINGS) and words[-1] not in _WEAK_WORDS
