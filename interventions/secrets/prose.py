"""Secrets in plain sentences: "my password is swordfish", "pin code 4711".

`states_a_secret` judges strictly what a session is to remember: a refusal costs a person one more
sentence. `mask_stated` masks only a person's own secret, or what has the form of one, so that "the
token is passed on" stays readable in what leaves a turn.
"""

from __future__ import annotations

import re

from interventions.secrets.names import MASK, words

_NAME = (
    r"(?:pass(?:word|phrase|code)s?|pwd|pin(?:[ -]?(?:code|number))?|(?:api|access|secret|private)"
    r"[ -]?(?:key|token)s?|token|credentials?"
    r"|lösenord(?:et)?|pinkod(?:en)?|passwort|kennwort|mot de passe|code secret|contraseña)"
)
# Of what it is: "for the router", "to our VPN".
_OF = r"(?:\s{1,4}(?:for|of|to|on|at|till|för|på|für|pour|de|du|para)\s{1,4}[^.!?\n]{1,60}?)?"
_IS = r"\s{0,4}(?:[:=]|\s(?:is|are|was|is now|är|ist|lautet|est|es)\s)\s{0,4}"
_MINE = (
    r"(?P<mine>\b(?:my|our|min|mitt|vårt|meine?|unser|mon|notre|mi|nuestra)\s{1,4}"
    r"(?:[\w-]{1,40}\s{1,4}){0,2})?"
)
_VALUE = r"(?P<value>(?:[^\s\\\"'”’`»]|\\(?![\"'nrt]))+)"  # noqa: RUF001
_STATEMENT = re.compile(
    rf"{_MINE}\b{_NAME}{_OF}(?P<is>{_IS})(?P<quote>[\"'“‘`«]?){_VALUE}",  # noqa: RUF001
    re.IGNORECASE,
)
# "dass mein Passwort hunter2 ist"
_VERB_LAST = re.compile(
    rf"\b(?P<mine>meine?|unser)\s{{1,4}}{_NAME}(?P<is>\s{{1,4}})(?P<quote>)"
    r"(?P<value>[^\s.,;!?]+)(?=\s{1,4}(?:ist|lautet)\b)",
    re.IGNORECASE,
)
_PIN_CODE = re.compile(r"\bpin(?:[ -]?code|kod)\s+(?P<value>\d{4,})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\bpin(?:[ -]?(?:code|number)|kod)?s?\s+\d{3,}\b", re.IGNORECASE)
_HINTS = ("pass", "pwd", "pin", "key", "token", "credential", "lösenord", "kennwort", "mot de",
          "code secret", "contraseña")  # fmt: skip
_MIXED = re.compile(r"(?!\d+-[a-z]+\Z)(?=.*\d)(?=.*[^\W\d]).{5,}", re.IGNORECASE)
_CLOSING = ".,;:?!)"
_NO_SECRET = words("states_none")


def states_a_secret(text: str) -> bool:
    if _NUMBERED.search(text):
        return True
    stated = (*_STATEMENT.finditer(text), *_VERB_LAST.finditer(text))
    return any(map(_is_stated, stated))


def mask_stated(text: str, lowered: str) -> str:
    """`lowered` is `text` in small letters."""
    if not any(hint in lowered for hint in _HINTS):
        return text
    text = _VERB_LAST.sub(_masked, _STATEMENT.sub(_masked, text))
    return _PIN_CODE.sub(_masked_value, text) if "pin" in lowered else text


def _is_stated(match: re.Match[str]) -> bool:
    value = match["value"].strip(".,;!?()").casefold()
    return bool(value) and value not in _NO_SECRET


def _masked(match: re.Match[str]) -> str:
    by_sign = match["is"].strip() in (":", "=")  # an assignment, which has rules of its own
    own = match["mine"] or match["quote"] or _MIXED.match(match["value"])
    masked = own and _is_stated(match) and not by_sign
    return _masked_value(match) if masked else match[0]


def _masked_value(match: re.Match[str]) -> str:
    value = match["value"]
    if value.startswith(MASK[:-1]):
        return match[0]
    bare = value.rstrip(_CLOSING)
    return f"{match[0][: -len(value)]}{MASK}{value[len(bare) :]}"
