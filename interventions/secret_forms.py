"""What a secret looks like inside text, whatever it is called."""

from __future__ import annotations

import re
from collections.abc import Callable

MASK = "[redacted]"
_MASK_START = MASK[:-1]

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:KEY|CERTIFICATE|MESSAGE)[A-Z0-9 ]{0,20}-----"
    r".*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)",
    re.DOTALL,
)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)")
_URL_TOKEN_USER = re.compile(r"(?<=://)[A-Za-z0-9_\-]{20,200}(?=@)")
_BEARER = re.compile(r"\b(Bearer|Basic|Digest|Token)(\s+)[A-Za-z0-9._~+/\-]{8,}=*", re.IGNORECASE)

# Issued tokens carry their issuer's prefix; one alternation, each branch starting with a literal.
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_\-]{8,}"
    r"|(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"
    r"|eyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]{5,}(?:\.[A-Za-z0-9_\-]*){1,3}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_\-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9\-]{10,}"
    r"|xapp-[A-Za-z0-9\-]{10,}"
    r"|AIza[A-Za-z0-9_\-]{30,}"
    r"|ya29\.[A-Za-z0-9_\-]{10,}"
    r"|hf_[A-Za-z0-9]{20,}"
    r"|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[A-Za-z0-9_\-]{20,}"
    r"|dop_v1_[a-f0-9]{32,}"
    r"|SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"
    r"|[0-9]{8,10}:[A-Za-z0-9_\-]{35}"
    r")"
)

_NAME = re.compile(
    r"(?P<key>[A-Za-z][A-Za-z0-9_.\-]{1,80})[\"']?[ \t]{0,3}(?P<sign>:=|=>|=|:)[ \t]{0,3}"
)
_VALUE = re.compile(
    r"[bfru]?\"(?:[^\"\\\n]|\\.){0,2000}(?:\"|\Z)|[bfru]?'(?:[^'\\\n]|\\.){0,2000}(?:'|\Z)"
    r"|[^\s\"'&,;)}\]]{1,2000}"
)
_HEADER = re.compile(
    r"(?P<key>\b(?:proxy-)?authorization|\b(?:set-)?cookie)"
    r"(?P<join>[\"']?[ \t]{0,3}[:=][ \t]{0,3})(?P<value>\"[^\"\n]*\"?|'[^'\n]*'?|[^\n\"']+)",
    re.IGNORECASE,
)
# An expression in a line of source code shows where a secret comes from, not the secret.
_EXPRESSION = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\.\w+)+|None\b|True\b|False\b")
_PLAIN_WORD = re.compile(r"[A-Za-z]+\Z|[^\w]+\Z")


def scrub(text: str, is_secret_key: Callable[[str], bool]) -> str:
    if len(text) < 6:
        return text
    if "-----BEGIN" in text:
        text = _PEM.sub(MASK, text)
    if "://" in text and "@" in text:
        text = _URL_CREDENTIALS.sub(MASK, text)
        text = _URL_TOKEN_USER.sub(MASK, text)
    lowered = text.lower()
    if "authorization" in lowered or "cookie" in lowered:
        text = _HEADER.sub(_mask_value, text)
    if any(word in lowered for word in ("bearer", "basic", "digest", "token")):
        text = _BEARER.sub(_mask_scheme, text)
    text = _TOKENS.sub(MASK, text)
    if "=" in text or ":" in text:
        text = _mask_assignments(text, is_secret_key)
    return text


def _mask_value(match: re.Match[str]) -> str:
    return f"{match['key']}{match['join']}{MASK}"


def _mask_scheme(match: re.Match[str]) -> str:
    secret = match[0][len(match[1]) + len(match[2]) :]
    prose = match[1].lower() != "bearer" and secret.isalpha()
    return match[0] if prose else f"{match[1]}{match[2]}{MASK}"


def _mask_assignments(text: str, is_secret_key: Callable[[str], bool]) -> str:
    parts: list[str] = []
    done = 0
    for name in _NAME.finditer(text):
        if name.start() < done or not is_secret_key(name["key"]):
            continue
        value = _VALUE.match(text, name.end())
        if value is None or _says_nothing(name, value[0]):
            continue
        quote = value[0][0] if value[0][0] in "\"'" else value[0][1:2]
        quote = quote if quote in ("'", '"') else ""
        parts += [text[done : name.end()], quote, MASK, quote]
        done = value.end()
    return "".join([*parts, text[done:]]) if parts else text


def _says_nothing(name: re.Match[str], value: str) -> bool:
    """What stands after a secret's name, and is none: prose, source code, a mask."""
    bare = value.strip("\"'")
    if bare in ("", "***") or bare.startswith(_MASK_START):
        return True
    if bare != value:
        return False
    if name[0][-1].isspace() and _EXPRESSION.match(value):
        return True
    # "unexpected token: comma" is prose; "password: hunter2" is not.
    prose = name["sign"] == ":" and "token" in name["key"].lower()
    return prose and _PLAIN_WORD.match(value) is not None
