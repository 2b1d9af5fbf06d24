"""Who may ask, how often, and in which conversation: named bearer tokens, a token bucket for each
client, ids that nobody else can make."""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, cast

from interventions.home import mark_of, replace_private, state_folder
from unified_flow.config.tables import ServeSettings
from unified_flow.errors import ConfigError
from unified_flow.servers.keys import exposure, private_text, read_key

logger = logging.getLogger("unified_flow")

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MIN_TOKEN_CHARS = 16
MAX_TOKEN_FILE_BYTES = 256 * 1024
MAX_CLIENTS = 10_000  # the one that was idle longest is forgotten first
KEY_FILE = "session_key"
_KEY_BYTES = 32
_MAC_CHARS = 32
_TRIAGE = re.compile(r"/(interventions|turns|rules|decisions|guardrails)(/|\Z)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_HINT = "make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"

Per = Literal["second", "minute", "hour"]
_SECONDS: dict[Per, float] = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


class TokenList:
    """Bearer tokens with the names of their clients: from `file`, or one from `variable`.

    The file holds a token alone, or lines `NAME TOKEN`, and comments, which begin with `#`; a name
    may stand twice, while its token is being changed. It is read again once it has changed; what
    then cannot be read or used leaves the tokens as they were, and is an error in the log.
    """

    def __init__(self, variable: str, file: Path | None) -> None:
        """Raises ConfigError for a token that cannot be read, that other users of the machine can
        read, or that could be guessed."""
        self._file = file
        self._seen = _stamp(file)
        self._tokens: tuple[tuple[str, bytes], ...] = ()
        if file is not None:
            self._tokens = _tokens_of(file)
        elif os.environ.get(variable, "").strip():
            self._tokens = (("default", _strong(read_key(variable) or "", variable)),)

    @property
    def is_set(self) -> bool:
        return bool(self._current())

    def client_of(self, authorization: str) -> str | None:
        """The name of the client whose token the header holds. Compared in constant time."""
        scheme, _, token = authorization.partition(" ")
        sent = token.encode() if scheme.lower() == "bearer" else b""
        found = [name for name, known in self._current() if hmac.compare_digest(sent, known)]
        return found[0] if found else None

    def _current(self) -> tuple[tuple[str, bytes], ...]:
        if self._file is not None and (stamp := _stamp(self._file)) != self._seen:
            self._seen = stamp
            try:
                self._tokens = _tokens_of(self._file)
            except ConfigError as exc:
                logger.error("%s; the earlier tokens remain valid. %s", exc, exc.hint)
        return self._tokens


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    with suppress(OSError):
        return mark_of(file) if file is not None else None
    return None


def _tokens_of(file: Path) -> tuple[tuple[str, bytes], ...]:
    if exposed := exposure(file):
        raise ConfigError(f"the token file {file} is not private", hint=exposed)
    text = private_text(file, "token", MAX_TOKEN_FILE_BYTES)
    tokens = []
    for words in map(str.split, text.splitlines()):
        if not words or words[0].startswith("#"):
            continue
        name = words[0] if len(words) > 1 else "default"
        if len(words) > 2 or not _NAME.fullmatch(name):
            raise ConfigError(
                f"the token file {file} has a line that is neither TOKEN nor NAME TOKEN",
                hint="a name has letters, digits, `.`, `_` and `-`, at most 50",
            )
        tokens.append((name, _strong(words[-1], f"the token file {file}")))
    if not tokens:
        raise ConfigError(f"the token file {file} holds no token", hint=_HINT)
    return tuple(tokens)


def _strong(token: str, where: str) -> bytes:
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"{where}: a bearer token has at least {MIN_TOKEN_CHARS} characters, all ASCII",
            hint=_HINT,
        )
    return token.encode()


@dataclass(frozen=True, repr=False)
class Tokens:
    """`client` opens what end users may do, `metrics` the metrics, `triage` everything."""

    client: TokenList
    triage: TokenList
    metrics: TokenList

    @classmethod
    def read(cls, settings: ServeSettings) -> Self:
        """Raises ConfigError, also for an address beyond loopback without a token."""
        tokens = cls(
            client=TokenList(settings.token_env, settings.token_file),
            triage=TokenList(settings.triage_token_env, settings.triage_token_file),
            metrics=TokenList(settings.metrics_token_env, settings.metrics_token_file),
        )
        if settings.host not in LOOPBACK and not tokens.client.is_set:
            raise ConfigError(
                f"{settings.host} can be reached from elsewhere, and no token is set",
                hint=f"put one into the variable {settings.token_env}, or name a file in "
                "serve.token_file",
            )
        return tokens

    def allows(self, authorization: str, path: str) -> bool:
        """Whether the header opens the path: for triage, for end users, or for who reads the
        metrics."""
        if self.triage.client_of(authorization) is not None:
            return True
        opens = self.metrics if path == "/metrics" and self.metrics.is_set else self.client
        known = not opens.is_set or opens.client_of(authorization) is not None
        return known and not needs_triage(path)


def needs_triage(path: str) -> bool:
    """Whether only the triage token opens it."""
    return _TRIAGE.match(path) is not None


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


STRANGERS = Rate(30, "minute")  # requests of one address without the token that they need


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


class SessionIds:
    """Ids of conversations that only this service can make, so that a client can name no other's.

    The key is the home's, in `shared_state/session_key`: every service of a home knows the ids
    of the others. Without the file all earlier ids are unknown. Raises ConfigError for a key that
    cannot be kept, or that others could guess, such as that of a file which lost its end."""

    def __init__(self, home: Path) -> None:
        path = state_folder(home) / KEY_FILE
        try:
            if not path.exists():
                _make_key(path)
            self._key = path.read_bytes()
        except OSError as exc:
            raise ConfigError(
                f"{path} cannot be used: {exc.strerror or exc}",
                hint="mend its permissions, or make room on the disk",
            ) from exc
        if len(self._key) < 2 * _KEY_BYTES:
            raise ConfigError(
                f"{path} is damaged", hint="delete it: a new one is made, and ids begin anew"
            )

    def make(self) -> str:
        name = secrets.token_hex(16)
        return f"{name}.{self._mac(name)}"

    def knows(self, session_id: str) -> bool:
        name, _, mac = session_id.partition(".")
        return hmac.compare_digest(mac.encode(), self._mac(name).encode())

    def _mac(self, name: str) -> str:
        return hmac.new(self._key, name.encode(), "sha256").hexdigest()[:_MAC_CHARS]


def _make_key(path: Path) -> None:
    """A link, so that of two services that start at once one makes it, and whole."""
    own = path.with_name(f"{KEY_FILE}.{secrets.token_hex(8)}")
    replace_private(own, secrets.token_hex(_KEY_BYTES))
    with suppress(FileExistsError):
        os.link(own, path)
    own.unlink()
