"""Secrets that show by themselves what they are, whatever they are called: keys, tokens, addresses
with a password."""

from __future__ import annotations

import re

MASK = "[redacted]"

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:KEY|CERTIFICATE|MESSAGE)[A-Z0-9 ]{0,20}-----"
    r".*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)",
    re.DOTALL,
)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:\"'<>]{0,200}:[^\s/\"'<>]{1,200}(?=@)")
_URL_TOKEN_USER = re.compile(r"(?<=://)[A-Za-z0-9_\-]{20,200}(?=@)")

# Issued tokens carry their issuer's prefix; one alternation, each branch starting with a literal.
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?!(?!(?:proj|ant|or|svcacct|admin|live|test)-)[a-z]{2,14}(?:-[a-z]{1,14}){1,8}"
    r"(?![A-Za-z0-9_\-]))[A-Za-z0-9_\-]{8,}"
    r"|(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_\-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9\-]{10,}"
    r"|xapp-[A-Za-z0-9\-]{10,}"
    r"|AIza[A-Za-z0-9_\-]{30,}"
    r"|ya29\.[A-Za-z0-9_\-]{10,}"
    r"|GOCSPX-[A-Za-z0-9_\-]{10,}"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/\-]{8,}"
    r"|discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_\-]{8,}"
    r"|hf_[A-Za-z0-9]{20,}"
    r"|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[A-Za-z0-9_\-]{20,}"
    r"|dop_v1_[a-f0-9]{32,}"
    r"|SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"
    r"|[0-9]{8,10}:[A-Za-z0-9_\-]{35}"
    r")"
)

# A JSON web token: dotted runs are read once each, so that no text is read again and again.
_DOTTED = re.compile(r"(?<![A-Za-z0-9_\-])[A-Za-z0-9_\-]{8,}+(?:\.[A-Za-z0-9_\-]*+)++")
_JWT_START = re.compile(r"(?<![A-Za-z0-9])eyJ")
_JWT = re.compile(r"eyJ[A-Za-z0-9_\-]{5,}+\.[A-Za-z0-9_\-]{5,}+\.")


def mask_keys_and_addresses(text: str) -> str:
    """Without PEM blocks and the credentials in a URL."""
    if "-----BEGIN" in text:
        text = _PEM.sub(MASK, text)
    if "://" in text and "@" in text:
        text = _URL_CREDENTIALS.sub(MASK, text)
        text = _URL_TOKEN_USER.sub(MASK, text)
    return text


def mask_tokens(text: str) -> str:
    """Without JSON web tokens and what the known issuers issue."""
    if "eyJ" in text:
        text = _DOTTED.sub(_mask_jwt, text)
    return _TOKENS.sub(MASK, text)


def _mask_jwt(match: re.Match[str]) -> str:
    run = match[0]
    start = _JWT_START.search(run)
    if start is None or _JWT.match(run, start.start()) is None:
        return run
    return run[: start.start()] + MASK
