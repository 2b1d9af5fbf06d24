"""Where the queue and the logs live, and how private they are.

Standard library only: the flow, the commands and the monitor all start here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import date
from functools import lru_cache
from pathlib import Path

HOME_VARIABLE = "UNIFIED_FLOW_HOME"
SETTINGS_FILE = "unified_flow.toml"
STATE_FOLDER = "shared_state"
PRIVATE_FOLDER_MODE = 0o700
PRIVATE_FILE_MODE = 0o600


def find_home(explicit: Path | str | None = None) -> Path:
    """The flag, else the environment, else the nearest folder upwards that is marked as one."""
    named = explicit or os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / SETTINGS_FILE).is_file() or (folder / STATE_FOLDER).is_dir():
            return folder
    return here


def state_folder(home: Path) -> Path:
    return home / STATE_FOLDER


def queue_file(home: Path) -> Path:
    return home / STATE_FOLDER / "intervention_queue.json"


def lock_file(home: Path) -> Path:
    """The lock that writers hold; any program may take it with plain `filelock`."""
    return home / STATE_FOLDER / "intervention_queue.json.lock"


def archive_file(home: Path) -> Path:
    return home / STATE_FOLDER / "intervention_archive.jsonl"


def transitions_file(home: Path) -> Path:
    return home / STATE_FOLDER / "intervention_transitions.jsonl"


def turns_folder(home: Path) -> Path:
    """The turns of entries that do not fit the queue file, a file each."""
    return home / STATE_FOLDER / "intervention_turns"


def error_log_folder(home: Path) -> Path:
    return home / "logs" / "errors"


@lru_cache(maxsize=16)
def error_log(home: Path, day: date) -> Path:
    return error_log_folder(home) / f"{day.isoformat()}.jsonl"


def emergency_log(home: Path, day: date) -> Path:
    return error_log_folder(home) / f"emergency_{day.isoformat()}.jsonl"


def make_private_folder(folder: Path) -> None:
    """Create what is missing of `folder` with mode 0700; folders that exist keep their mode."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder.parent == folder:
            break
        folder = folder.parent
    for part in reversed(missing):
        part.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)


def replace_private(path: Path, text: str) -> None:
    """Put `text` in the place of the file, mode 0600: the old file or the new one, never a part.

    The caller holds the file's lock. Raises OSError.
    """
    new = path.with_suffix(".new")
    with suppress(FileNotFoundError):
        new.unlink()  # left over by a process that died
    descriptor = open_private(new, os.O_WRONLY | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_private(path: Path, flags: int) -> int:
    """A file descriptor for `path`, created with mode 0600, its folder created when missing."""
    flags |= os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, PRIVATE_FILE_MODE)
    except FileNotFoundError:
        make_private_folder(path.parent)
        return os.open(path, flags, PRIVATE_FILE_MODE)
