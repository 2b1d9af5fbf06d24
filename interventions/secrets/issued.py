"""What is a secret whatever stands around it: keys, JSON web tokens, what known issuers issue."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from interventions.secrets.names import MASK

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ALPHABETS = {
    "letters_and_digits": "[A-Za-z0-9]",
    "words_and_hyphens": r"(?:[A-Za-z0-9_\-]|\.(?=[A-Za-z0-9]))",
    "base64": r"[A-Za-z0-9+/=_\-]",
}
_FORMS = [
    f"{re.escape(prefix)}{letter}{{{least},}}+"
    for alphabet, letter in _ALPHABETS.items()
    for prefix, least in _TABLE[alphabet].items()
]
# A `\n` written out and `%3D` before a token look like letters of it.
_BOUNDARY = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_TOKEN = re.compile(f"{_BOUNDARY}(?:{'|'.join([*_FORMS, *_TABLE['whole'].values()])})")
# Only such a run is looked at with all forms.
_RUN = re.compile(r"[A-Za-z0-9_\-.~+/:=@]{11,}+")
# `xoxb-your-token-here`, `ghp_xxxxxxxx`: what a page writes in the place of a token.
_PLACEHOLDER = re.compile(
    r"[xX*.]{6,}\Z|[-_.](?:[a-z]{1,14}[-_]){1,8}[a-z]{1,14}\Z|[-_.](?:[A-Z]{1,14}[-_]){1,8}[A-Z]{1,14}\Z"
)

# A JSON web token: dotted runs are read once each, so that no text is read again and again.
_DOTTED = re.compile(r"(?<![A-Za-z0-9_\-])[A-Za-z0-9_\-]{8,}+(?:\.[A-Za-z0-9_\-]*+)++")
_JWT = re.compile(
    _BOUNDARY + r"eyJ[A-Za-z0-9_\-]{5,}+\.(?:[A-Za-z0-9_\-]{5,}+|\.[A-Za-z0-9_\-]{10,}+)\."
)

# Between the lines of a key: line ends, also written out in source code, and a quotation's margin.
_JOINT = r"(?:\\{1,4}[nrt]|[\s\"'`#>|,+\\]|//)*+"
_BASE64 = "[A-Za-z0-9+/=]"
_PRIVATE_KEY = re.compile(
    rf"-----BEGIN (?:[A-Z0-9]{{1,20}} ){{0,3}}PRIVATE KEY(?: BLOCK)?-----{_JOINT}"
    rf"(?:[A-Za-z][A-Za-z\-]{{1,30}}: [^\n\\\"']{{0,200}}+{_JOINT}){{0,5}}"
    rf"(?:(?=[a-z]*+[A-Z0-9+/])(?:{_BASE64}++{_JOINT})++-----END [A-Z0-9 ]{{1,60}}-----"
    rf"|(?:{_BASE64}{{24,}}+{_JOINT})++)"  # cut off
)


def mask_issued(text: str) -> str:
    """Without private keys, JSON web tokens and issued tokens; placeholders of tokens stay."""
    if "-----BEGIN" in text:
        text = _PRIVATE_KEY.sub(MASK, text)
    return mask_tokens(text)


def mask_tokens(text: str) -> str:
    """Without JSON web tokens and what has the form of an issued token."""
    if "eyJ" in text:
        text = _DOTTED.sub(_mask_jwt, text)
    parts: list[str] = []
    done = 0
    for run in _RUN.finditer(text):
        for token in _TOKEN.finditer(text, run.start(), run.end()):
            if not _PLACEHOLDER.search(token[0]):
                parts += [text[done : token.start()], MASK]
                done = token.end()
    return "".join([*parts, text[done:]]) if parts else text


def _mask_jwt(run: re.Match[str]) -> str:
    token = _JWT.search(run.string, run.start(), run.end())
    return run[0] if token is None else run.string[run.start() : token.start()] + MASK
