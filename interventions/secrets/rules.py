"""The rules, which are data (words, forms and issuers of `secrets.toml`), and what they say is a
secret whatever stands around it: keys, JSON web tokens, what known issuers issue."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MASK = "[redacted]"
Span = tuple[int, int]
TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8")
)

_NAMED = re.compile(r"\{([a-z][a-z0-9_]+)\}")


def words(name: str) -> frozenset[str]:
    return frozenset(TABLE["words"][name].split())


def spelled(pattern: str) -> str:
    """The pattern with the text of each part, and of each list of words, that it names."""
    return _NAMED.sub(_named, pattern)


def _named(name: re.Match[str]) -> str:
    part = TABLE["parts"].get(name[1])
    return f"(?:{'|'.join(map(re.escape, words(name[1])))})" if part is None else spelled(part)


def patterns(table: str, flags: int = 0) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(spelled(form), flags) for name, form in TABLE[table].items()}


TEXT = patterns("text")


def is_masked(text: str) -> bool:
    return text.startswith(MASK[:-1])


def inside_quotes(text: str, start: int, end: int) -> Span:
    """The span of a value without its quotes, if it has any."""
    opening = TEXT["opening"].match(text, start, end)
    if opening is None:
        return start, end
    closed = text.endswith(opening["quote"], opening.end(), end)
    return opening.end(), end - len(opening["quote"]) if closed else end


def without(text: str, spans: Iterable[Span]) -> str:
    """The text with each of these, which are in order, masked."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += [text[done:start], MASK]
        done = end
    return "".join([*parts, text[done:]])


_ISSUED = TABLE["issued"]
_FORMS = [
    f"{re.escape(prefix)}{letter}{{{least},}}+"
    for alphabet, letter in _ISSUED["alphabet"].items()
    for prefix, least in _ISSUED[alphabet].items()
]
_TOKEN = re.compile(spelled(f"{{boundary}}(?:{'|'.join([*_FORMS, *_ISSUED['whole'].values()])})"))
KEY = patterns("key")


def mask_issued(text: str) -> str:
    """Mask private keys, JSON web tokens and issued tokens; placeholders of tokens stay."""
    if "-----BEGIN" in text:
        text = KEY["private"].sub(MASK, text)
    return mask_tokens(text)


def mask_tokens(text: str) -> str:
    """Mask JSON web tokens, and what has the form of an issued token."""
    if "eyJ" in text:
        text = KEY["dotted"].sub(_mask_web_token, text)
    runs = (_TOKEN.finditer(text, *run.span()) for run in KEY["run"].finditer(text))
    tokens = (token for found in runs for token in found)
    return without(text, (t.span() for t in tokens if not KEY["placeholder"].search(t[0])))


def _mask_web_token(run: re.Match[str]) -> str:
    token = KEY["web_token"].search(run.string, run.start(), run.end())
    return run[0] if token is None else run.string[run.start() : token.start()] + MASK
