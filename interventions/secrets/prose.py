"""Secrets in plain sentences: "my password is swordfish", "pin code 4711".

`states_a_secret` judges strictly what a session is to remember: a refusal costs a person one more
sentence. `stated_value` finds only a person's own secret, or what has the form of one, so that "the
token is passed on" stays readable in what leaves a turn.
"""

from __future__ import annotations

import re

from interventions.secrets.rules import patterns, words
from interventions.secrets.values import is_masked

_PROSE = patterns("prose", re.IGNORECASE)
_CLOSING = ".,;:?!)"
_NO_SECRET, _SPOKEN = words("states_none"), words("spoken")
_LOOK_BACK = 100


def states_a_secret(text: str) -> bool:
    if _PROSE["numbered"].search(text):
        return True
    for name in _PROSE["name"].finditer(text):
        own = _is_mine(text, name.start()) and _PROSE["verb_last"].match(text, name.end())
        stated = own or _PROSE["stated"].match(text, name.end())
        if stated and _is_value(stated["value"]):
            return True
    return False


def stated_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the secret stands that the sentence around the name at `start` to `end` states."""
    name = text[start:end].lower()
    if name not in _SPOKEN:
        return None
    stated = _PROSE["stated"].match(text, end)
    if stated and stated["is"].strip() not in (":", "=") and _is_value(stated["value"]):
        own = stated["quote"] or _PROSE["mixed"].match(stated["value"]) or _is_mine(text, start)
        return _span(stated) if own else None
    is_pin = name.endswith(("code", "kod", "koden"))
    stated = _PROSE["pin_code"].match(text, end) if is_pin else None
    if stated is None and _is_mine(text, start):
        stated = _PROSE["verb_last"].match(text, end)
    return _span(stated) if stated and _is_value(stated["value"]) else None


def _is_mine(text: str, start: int) -> bool:
    return _PROSE["mine"].search(text[max(0, start - _LOOK_BACK) : start]) is not None


def _is_value(value: str) -> bool:
    bare = value.strip(".,;!?()").casefold()
    return bool(bare) and bare not in _NO_SECRET and not is_masked(bare)


def _span(stated: re.Match[str]) -> tuple[int, int]:
    start, end = stated.span("value")
    return start, end - (len(stated["value"]) - len(stated["value"].rstrip(_CLOSING)))
