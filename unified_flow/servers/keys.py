"""The key of a model server: from an environment variable or a file, never an argument.

No message here holds any part of a key.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from unified_flow.errors import ConfigError

DEFAULT_VARIABLE = "OPENAI_API_KEY"
_MAX_BYTES = 8192


def read_key(
    variable: str = DEFAULT_VARIABLE,
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    needed: bool = False,
) -> str | None:
    """The key in `file` if one is named, else in `variable`; None if the default one is unset and
    none is `needed`.

    Raises ConfigError for a file that holds no usable key, and for a variable that was named
    on purpose and is not set: a server asked without its key only says "unauthorized".
    """
    if file is not None:
        return _usable(private_text(file, "key", _MAX_BYTES), f"the key file {file}")
    value = environ.get(variable, "")
    if value.strip():
        return _usable(value, f"the environment variable {variable}")
    if needed or variable != DEFAULT_VARIABLE:
        raise ConfigError(
            f"the environment variable {variable}, which should hold a server's key, is not set",
            hint=f"Set it (export {variable}=...), or name another variable or file.",
        )
    return None


def exposure(file: Path) -> str | None:
    """What to do about a key file that other users can read; None if they cannot."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return None  # `read_key` says what is wrong with it
    if mode & 0o077:
        return f"{file} can be read by others (mode {mode:04o}): chmod 600 {file}"
    return None


def private_text(file: Path, kind: str, most: int) -> str:
    """What a file of a `kind` (key, token) holds, at most so many bytes. Raises ConfigError."""
    hint = f"Name a readable file that holds the {kind} and nothing else."
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # to open a pipe would hold the program
            raise ConfigError(f"the {kind} file {file} is not a regular file", hint=hint)
        with file.open("rb") as opened:
            data = opened.read(most + 1)
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "the name holds a null byte"
        raise ConfigError(f"the {kind} file {file} cannot be read: {why}", hint=hint) from exc
    if len(data) > most:
        raise ConfigError(f"the {kind} file {file} is too long to hold a {kind}", hint=hint)
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _usable(value: str, where: str) -> str:
    key = value.strip()
    if not key:
        raise ConfigError(f"{where} is empty", hint="Write the key into it.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"{where} does not hold one key: it has spaces, line breaks or other characters"
            " that no key has",
            hint="It must hold the key alone, on one line.",
        )
    return key
