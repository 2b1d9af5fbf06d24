"""Which names say by themselves that their value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_SECRET_WORDS = frozenset(
    [
        "accesskey",
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "creds",
        "cvc",
        "cvv",
        "jwt",
        "mfa",
        "otp",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "pin",
        "privatekey",
        "pwd",
        "secret",
        "secretkey",
        "secrets",
        "signature",
        "ssn",
        "token",
        "totp",
    ]
)
_SECRET_PAIRS = frozenset(
    {
        "access key",
        "access keys",
        "access tokens",
        "account key",
        "api key",
        "api keys",
        "api tokens",
        "auth tokens",
        "client key",
        "connection string",
        "encryption key",
        "license key",
        "master key",
        "pass phrase",
        "pass word",
        "private key",
        "refresh tokens",
        "secret key",
        "service key",
        "session key",
        "shared key",
        "signing key",
        "ssh key",
        "storage key",
        "subscription key",
    }
)
# Beside a secret word these make it a measure or a description of one: `token_count`, `auth_type`.
_HARMLESS_WORDS = frozenset(
    [
        "budget",
        "completion",
        "cost",
        "count",
        "counts",
        "enabled",
        "error",
        "expiration",
        "expired",
        "expires",
        "expiry",
        "failed",
        "kind",
        "len",
        "length",
        "limit",
        "limits",
        "max",
        "method",
        "min",
        "mode",
        "num",
        "number",
        "per",
        "policy",
        "prompt",
        "rate",
        "ratio",
        "required",
        "scheme",
        "size",
        "status",
        "total",
        "ttl",
        "type",
        "types",
        "usage",
        "used",
        "window",
    ]
)
_SECRET_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "secretkey",
    "privatekey",
    "accesskey",
    "credentials",
)


@lru_cache(maxsize=4096)
def is_secret_key(key: str) -> bool:
    """Whether the name alone says that the value is a secret: `accessToken`, `X-Api-Key`."""
    words = [word.lower() for word in _WORDS.findall(key[:200]) if not word.isdigit()]
    if any(word in _HARMLESS_WORDS for word in words):
        return False
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    return any(" ".join(pair) in _SECRET_PAIRS for pair in pairwise(words))
