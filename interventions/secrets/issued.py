"""What is a secret whatever stands around it: keys, JSON web tokens, what known issuers issue."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from interventions.secrets.names import MASK

_FORMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["forms"]
_TOKENS = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_FORMS)})")
# `xoxb-your-token-here`, `ghp_xxxxxxxx`: what a page writes in the place of a token.
_PLACEHOLDER = re.compile(r"[xX]{6,}\Z|[-_.](?:[A-Za-z]{1,14}[-_]){1,8}[A-Za-z]{1,14}\Z")

# A JSON web token: dotted runs are read once each, so that no text is read again and again.
_DOTTED = re.compile(r"(?<![A-Za-z0-9_\-])[A-Za-z0-9_\-]{8,}+(?:\.[A-Za-z0-9_\-]*+)++")
_JWT_START = re.compile(r"(?<![A-Za-z0-9])eyJ")
_JWT = re.compile(r"eyJ[A-Za-z0-9_\-]{5,}+\.[A-Za-z0-9_\-]{5,}+\.")

# Between the lines of a key: line ends, also written out in source code, and a quotation's margin.
_JOINT = r"(?:\\{1,2}[nrt]|[\s\"'`#>|,])*+"
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
    text = _mask_web_tokens(text)
    return _TOKENS.sub(lambda token: token[0] if _PLACEHOLDER.search(token[0]) else MASK, text)


def mask_tokens(text: str) -> str:
    """Without JSON web tokens and what has the form of an issued token, placeholders too."""
    return _TOKENS.sub(MASK, _mask_web_tokens(text))


def _mask_web_tokens(text: str) -> str:
    return _DOTTED.sub(_mask_jwt, text) if "eyJ" in text else text


def _mask_jwt(match: re.Match[str]) -> str:
    run = match[0]
    start = _JWT_START.search(run)
    if start is None or _JWT.match(run, start.start()) is None:
        return run
    return run[: start.start()] + MASK
