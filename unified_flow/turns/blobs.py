"""Values too large for a line of the journal: each whole in a file named by its SHA-256.

A name is given only to a file that is complete and on disk, so that a process or a machine that
dies leaves no half a value under it, and what is read is checked against its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from interventions.home import replace_private, sync_folder

NAME = re.compile(r"[0-9a-f]{64}")
UNFINISHED = ".tmp"


def store(folder: Path, content: bytes) -> str:
    """The name under which `content` lies in `folder`, durably. Raises OSError, and then nothing
    of it is left. Only the holder of the turn's lock may call it."""
    name = hashlib.sha256(content).hexdigest()
    if not _holds(folder / name, content):
        replace_private(folder / name, content)
    sync_folder(folder)
    return name


def load(folder: Path, name: Any) -> Any:
    """The value. Raises OSError, and ValueError for one that is not what was stored."""
    # Never a path, whatever the line says.
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"{str(name)[:80]!r} is no name of a file beside the journal")
    content = (folder / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != name:
        raise ValueError(f"the file {name} is not what was written to it")
    return json.loads(content)


def sweep(folder: Path) -> None:
    """Remove the unfinished files of a process that died."""
    for left in folder.glob(f"*{UNFINISHED}"):
        with suppress(OSError):
            left.unlink()


def remove_all(folder: Path) -> None:
    """Remove the values of a journal that is not there, finished or not. Raises OSError."""
    sweep(folder)
    for left in folder.iterdir():
        if NAME.fullmatch(left.name):
            left.unlink()


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False
