"""Secrets in plain sentences, judged strictly: what a session is to remember of "my password is
swordfish". A refusal costs a person one more sentence."""

from __future__ import annotations

import re

from interventions.secrets.rules import patterns, words
from interventions.secrets.values import is_masked

_PROSE = patterns("prose", re.IGNORECASE)
_NO_SECRET = words("states_none")
_LOOK_BACK = 100


def states_a_secret(text: str) -> bool:
    if _PROSE["numbered"].search(text):
        return True
    for name in _PROSE["name"].finditer(text):
        own = _PROSE["mine"].search(text[max(0, name.start() - _LOOK_BACK) : name.start()])
        stated = own and _PROSE["verb_last"].match(text, name.end())
        stated = stated or _PROSE["stated"].match(text, name.end())
        value = stated["value"].strip(".,;!?()").casefold() if stated else ""
        if value and value not in _NO_SECRET and not is_masked(value):
            return True
    return False
