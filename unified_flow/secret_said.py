"""Secrets as people say them: "my password is swordfish", "pin code 4711".

Too eager for a log, where "the password is wrong" must stay readable; right for what is to be
remembered, where a refusal costs a person a sentence in other words.
"""

from __future__ import annotations

import re

_NAME = (
    r"(?:pass(?:word|phrase|code)s?|pwd|pin(?:[ -]?(?:code|number))?|(?:api|access|secret|private)"
    r"[ -]?(?:key|token)s?|token|credentials?"
    r"|lösenord(?:et)?|pinkod(?:en)?|passwort|kennwort|mot de passe|code secret|contraseña)"
)
# Of what it is: "for the router", "to our VPN".
_OF = r"(?:\s+(?:for|of|to|on|at|till|för|på|für|pour|de|du|para)\s+[^.!?\n]{1,60}?)?"
_IS = r"\s*(?:[:=]|\s(?:is|are|was|is now|är|ist|lautet|est|es)\s)\s*"
_SAID = re.compile(rf"\b{_NAME}{_OF}{_IS}[\"'“‘`«]?(?P<value>[^\s\"'”’`»]+)", re.IGNORECASE)  # noqa: RUF001
_NUMBERED = re.compile(r"\bpin(?:[ -]?(?:code|number)|kod)?s?\s+\d{3,}\b", re.IGNORECASE)
# What such a sentence says of a secret without telling it.
_NOT_TOLD = frozenset(
    """
    a always an at by case changed compromised correct different empty encrypted expired for from
    given hashed hidden held in incorrect invalid kept known leaked long lost managed missing my
    named needed never new no not on optional our required right rotated safe same secret set short
    stored strong that the there to too unknown used valid weak what where with wrong your
    inte fel rätt sparat i på falsch richtig nicht im in dans faux incorrecte
    """.split()  # noqa: SIM905
)


def says_a_secret(text: str) -> bool:
    if _NUMBERED.search(text):
        return True
    values = (match["value"].strip(".,;!?()").casefold() for match in _SAID.finditer(text))
    return any(value and value not in _NOT_TOLD for value in values)
