"""Ids of conversations that only this service can make, so that a client can name no other's."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from interventions.home import replace_private, state_folder
from unified_flow.errors import ConfigError

FILE = "session_key"
_BYTES = 32
_MAC_CHARS = 32


class SessionIds:
    """The key is the home's, in `shared_state/session_key`: every service of a home knows the ids
    of the others. Without the file all earlier ids are unknown. Raises ConfigError for a key that
    cannot be kept, or that others could guess, such as that of a file which lost its end."""

    def __init__(self, home: Path) -> None:
        path = state_folder(home) / FILE
        try:
            if not path.exists():
                _make(path)
            self._key = path.read_bytes()
        except OSError as exc:
            raise ConfigError(
                f"{path} cannot be used: {exc.strerror or exc}",
                hint="mend its permissions, or make room on the disk",
            ) from exc
        if len(self._key) < 2 * _BYTES:
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


def _make(path: Path) -> None:
    """A link, so that of two services that start at once one makes it, and whole."""
    own = path.with_name(f"{FILE}.{secrets.token_hex(8)}")
    replace_private(own, secrets.token_hex(_BYTES))
    with suppress(FileExistsError):
        os.link(own, path)
    own.unlink()
