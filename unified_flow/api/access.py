"""Who may ask, and how often: bearer tokens, and a token bucket for each client."""

from __future__ import annotations

import hmac
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, cast

from unified_flow.config.tables import ServeSettings
from unified_flow.errors import ConfigError
from unified_flow.servers.keys import exposure, read_key

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MIN_TOKEN_CHARS = 16
MAX_CLIENTS = 10_000  # the one that was idle longest is forgotten first
_SCHEME = "bearer "

Per = Literal["second", "minute", "hour"]
_SECONDS: dict[Per, float] = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


@dataclass(frozen=True, repr=False)
class Tokens:
    """`client` opens what end users may do, `triage` that and everything else; None: not set."""

    client: str | None
    triage: str | None

    @classmethod
    def read(cls, settings: ServeSettings) -> Self:
        """Raises ConfigError, also for an address beyond loopback without a token."""
        tokens = cls(
            client=read_token(settings.token_env, settings.token_file),
            triage=read_token(settings.triage_token_env, settings.triage_token_file),
        )
        if settings.host not in LOOPBACK and tokens.client is None:
            raise ConfigError(
                f"{settings.host} can be reached from elsewhere, and no token is set",
                hint=f"put one into the variable {settings.token_env}, or name a file in "
                "serve.token_file",
            )
        return tokens

    def allows(self, authorization: str) -> bool:
        """Whether the header opens the routes for end users."""
        return (
            self.client is None
            or _holds(authorization, self.client)
            or self.allows_triage(authorization)
        )

    def allows_triage(self, authorization: str) -> bool:
        return self.triage is not None and _holds(authorization, self.triage)


def _holds(authorization: str, token: str) -> bool:
    """Compared in constant time."""
    is_bearer = authorization.lower().startswith(_SCHEME)
    sent = authorization[len(_SCHEME) :] if is_bearer else ""
    return hmac.compare_digest(sent.encode(), token.encode())


def read_token(variable: str, file: Path | None) -> str | None:
    """The token in `file` if one is named, else in `variable`; None if that is not set.

    Raises ConfigError for one that cannot be read, that others can read, or that could be guessed.
    """
    if file is None and not os.environ.get(variable, "").strip():
        return None
    if file is not None and (exposed := exposure(file)):
        raise ConfigError(f"the token file {file} is not private", hint=exposed)
    token = read_key(variable, file)
    if token is None or len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f"a bearer token has at least {MIN_TOKEN_CHARS} characters",
            hint="make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


@dataclass(frozen=True)
class Rate:
    """`most` requests in one `per`; written `5/second`."""

    most: int
    per: Per

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for `off`; the settings have checked the form."""
        if text == "off":
            return None
        number, _, per = text.partition("/")
        return cls(int(number), cast("Per", per))

    @property
    def tokens_per_s(self) -> float:
        return self.most / _SECONDS[self.per]


class Buckets:
    """A client may spend `rate.most` at once, and gets them back evenly."""

    def __init__(self, rate: Rate | None, most_clients: int = MAX_CLIENTS) -> None:
        self.rate = rate
        self._most_clients = most_clients
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, at second

    def take(self, client: str, now_s: float) -> float:
        """0.0, or the seconds until this client may ask again."""
        if self.rate is None:
            return 0.0
        most = float(self.rate.most)
        tokens, at = self._left.pop(client, (most, now_s))
        tokens = min(most, tokens + max(0.0, now_s - at) * self.rate.tokens_per_s)
        taken = tokens >= 1.0
        self._left[client] = (tokens - 1.0 if taken else tokens, now_s)
        if len(self._left) > self._most_clients:
            self._left.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) / self.rate.tokens_per_s
