"""Secrets in plain sentences: "my password is swordfish", "pin code 4711".

`states_a_secret` judges strictly what a session is to remember: a refusal costs a person one more
sentence. `stated_value` finds only a person's own secret, or what has the form of one, so that "the
token is passed on" stays readable in what leaves a turn.
"""

from __future__ import annotations

import re

from interventions.secrets.names import words

_NAME = re.compile(
    r"\b(?:pass(?:word|phrase|code)s?|pwd|pin(?:[ -]?(?:code|number))?"
    r"|(?:api|access|secret|private)[ -]?(?:key|token)s?|token|credentials?"
    r"|lösenord(?:et)?|pinkod(?:en)?|passwort|kennwort|mot de passe|code secret|contraseña)",
    re.IGNORECASE,
)
# Of what it is: "for the router", "to our VPN".
_OF = r"(?:\s{1,4}(?:for|of|to|on|at|till|för|på|für|pour|de|du|para)\s{1,4}[^.!?\n]{1,60}?)?"
_IS = r"\s{0,4}(?:[:=]|\s(?:is|are|was|is now|är|ist|lautet|est|es)\s)\s{0,4}"
_MINE = re.compile(
    r"\b(?:my|our|min|mitt|vårt|meine?|unser|mon|notre|mi|nuestra)\s{1,4}"
    r"(?:[\w-]{1,40}\s{1,4}){0,2}\Z",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"{_OF}(?P<is>{_IS})(?P<quote>[\"'“‘`«]?)"  # noqa: RUF001
    r"(?P<value>(?:[^\s\\\"'”’`»]|\\(?![\"'nrt]))+)",  # noqa: RUF001
    re.IGNORECASE,
)
# "dass mein Passwort hunter2 ist"
_VERB_LAST = re.compile(r"\s{1,4}(?P<value>[^\s.,;!?]+)(?=\s{1,4}(?:ist|lautet)\b)", re.IGNORECASE)
_PIN_CODE = re.compile(r"(?<=[dDeE])\s{1,4}(?P<value>[0-9]{4,})\b")
_NUMBERED = re.compile(r"\bpin(?:[ -]?(?:code|number)|kod)?s?\s+\d{3,}\b", re.IGNORECASE)
_MIXED = re.compile(r"(?!\d+-[a-z]+\Z)(?=.*\d)(?=.*[^\W\d]).{5,}", re.IGNORECASE)
_CLOSING = ".,;:?!)"
_NO_SECRET, _SPOKEN = words("states_none"), words("spoken")
_LOOK_BACK = 100


def states_a_secret(text: str) -> bool:
    if _NUMBERED.search(text):
        return True
    for name in _NAME.finditer(text):
        own = _is_mine(text, name.start()) and _VERB_LAST.match(text, name.end())
        stated = own or _STATED.match(text, name.end())
        if stated and _is_value(stated["value"]):
            return True
    return False


def stated_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the secret stands that the sentence around the name at `start` to `end` states."""
    name = text[start:end].lower()
    if name not in _SPOKEN:
        return None
    stated = _STATED.match(text, end)
    if stated and stated["is"].strip() not in (":", "=") and _is_value(stated["value"]):
        own = stated["quote"] or _MIXED.match(stated["value"]) or _is_mine(text, start)
        return _span(stated) if own else None
    stated = _PIN_CODE.match(text, end) if name.endswith(("code", "kod", "koden")) else None
    if stated is None and _is_mine(text, start):
        stated = _VERB_LAST.match(text, end)
    return _span(stated) if stated and _is_value(stated["value"]) else None


def _is_mine(text: str, start: int) -> bool:
    return _MINE.search(text[max(0, start - _LOOK_BACK) : start]) is not None


def _is_value(value: str) -> bool:
    bare = value.strip(".,;!?()").casefold()
    return bool(bare) and bare not in _NO_SECRET and not bare.startswith("[redacted")


def _span(stated: re.Match[str]) -> tuple[int, int]:
    start, end = stated.span("value")
    return start, end - (len(stated["value"]) - len(stated["value"].rstrip(_CLOSING)))
