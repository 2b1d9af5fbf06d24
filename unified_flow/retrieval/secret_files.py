"""Files that hold keys or credentials, by their names or by what is in them: neither the index nor
a tool reads them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_FOLDERS, _PROSE = frozenset[str](_KNOWN["folders"]), frozenset[str](_KNOWN["prose"])
_NAMES = re.compile(_KNOWN["names"], re.IGNORECASE | re.VERBOSE)
_SSH_KEY = re.compile(_KNOWN["ssh_key"])
_CREDENTIAL_NAMES = [name.encode() for name in _KNOWN["credential_names"]]
_KEYS = re.compile(_KNOWN["private_key"].encode(), re.VERBOSE)
_CREDENTIALS = re.compile(
    _KNOWN["credentials"].encode().replace(b"NAMES", b"|".join(_CREDENTIAL_NAMES)),
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_SETTING = re.compile(_KNOWN["setting"].encode(), re.VERBOSE)
_HEAD = 64 * 1024  # bytes: a file of keys is small


def is_secret(path: str, *, is_folder: bool = False) -> bool:
    """Whether a file or folder mostly holds credentials; `path` begins with the root's own name."""
    *above, name = path.split("/")
    return (
        not _FOLDERS.isdisjoint((*above, name))
        or (name == "config" and above[-1:] == [".kube"])
        or _NAMES.fullmatch(name) is not None
        or (not is_folder and _SSH_KEY.fullmatch(name) is not None)
    )


def secret_in(data: bytes, extension: str) -> str | None:
    """Which keys or credentials the file holds; None for a page that only shows some."""
    head = data[:_HEAD]
    keys = sum(len(found[0]) for found in _KEYS.finditer(head))
    if 2 * keys > len(head) or (keys and extension not in _PROSE):
        return "a private key"
    small = head.lower()
    # The names first: the pattern alone takes a quarter of the time that reading a file does.
    if any(name in small for name in _CREDENTIAL_NAMES) and _CREDENTIALS.search(head):
        lines = [line.strip() for line in head.split(b"\n")]
        if 10 * sum(map(bool, map(_SETTING.fullmatch, lines))) >= 9 * len(lines):
            return "cloud credentials"
    return None
