"""What is a secret whatever stands around it: keys, JSON web tokens, what known issuers issue."""

from __future__ import annotations

import re

from interventions.secrets.rules import MASK, TABLE, patterns, spelled, without

_ALPHABETS = {
    "letters_and_digits": "[A-Za-z0-9]",
    "words_and_hyphens": r"(?:[A-Za-z0-9_\-]|\.(?=[A-Za-z0-9]))",
    "base64": r"[A-Za-z0-9+/=_\-]",
}
_ISSUED = TABLE["issued"]
_FORMS = [
    f"{re.escape(prefix)}{letter}{{{least},}}+"
    for alphabet, letter in _ALPHABETS.items()
    for prefix, least in _ISSUED[alphabet].items()
]
_TOKEN = re.compile(spelled(f"{{boundary}}(?:{'|'.join([*_FORMS, *_ISSUED['whole'].values()])})"))
KEY = patterns("key")


def mask_issued(text: str) -> str:
    """Without private keys, JSON web tokens and issued tokens; placeholders of tokens stay."""
    if "-----BEGIN" in text:
        text = KEY["private"].sub(MASK, text)
    return mask_tokens(text)


def mask_tokens(text: str) -> str:
    """Without JSON web tokens and what has the form of an issued token."""
    if "eyJ" in text:
        text = KEY["dotted"].sub(_mask_web_token, text)
    runs = (_TOKEN.finditer(text, *run.span()) for run in KEY["run"].finditer(text))
    tokens = (token for found in runs for token in found)
    return without(text, (t.span() for t in tokens if not KEY["placeholder"].search(t[0])))


def _mask_web_token(run: re.Match[str]) -> str:
    token = KEY["web_token"].search(run.string, run.start(), run.end())
    return run[0] if token is None else run.string[run.start() : token.start()] + MASK
