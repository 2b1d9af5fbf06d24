"""Bearer tokens: from a variable or a file, never an argument; compared in constant time."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unified_flow.errors import ConfigError
from unified_flow.servers.keys import exposure, read_key

SHORTEST = 16
_SCHEME = "bearer "


@dataclass(frozen=True, repr=False)
class Tokens:
    """`client` opens what end users may do, `triage` that and everything else; None: not set."""

    client: str | None
    triage: str | None

    def opens(self, authorization: str) -> bool:
        """Whether a client may come in at all."""
        return (
            self.client is None
            or self._is(authorization, self.client)
            or self.is_triage(authorization)
        )

    def is_triage(self, authorization: str) -> bool:
        return self.triage is not None and self._is(authorization, self.triage)

    def _is(self, authorization: str, token: str) -> bool:
        given = authorization[len(_SCHEME) :] if authorization.lower().startswith(_SCHEME) else ""
        return hmac.compare_digest(given.encode(), token.encode())


def read_token(
    variable: str, file: Path | None, environ: Mapping[str, str] = os.environ
) -> str | None:
    """The token in `file` if one is named, else in `variable`; None if that is not set.

    Raises ConfigError for one that cannot be read, that others can read, or that could be guessed.
    """
    if file is None and not environ.get(variable, "").strip():
        return None
    if file is not None and (exposed := exposure(file)):
        raise ConfigError(f"the token file {file} is not private", hint=exposed)
    token = read_key(variable, file, environ)
    if token is None or len(token) < SHORTEST:
        raise ConfigError(
            f"a bearer token has at least {SHORTEST} characters",
            hint="make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token
