"""Where the queue and the logs live, and how private they are.

Standard library only: the flow, the commands and the monitor all start here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import lru_cache
from pathlib import Path

HOME_VARIABLE = "UNIFIED_FLOW_HOME"
SETTINGS_FILE, PROJECT_FILE = "unified_flow.toml", "pyproject.toml"
STATE_FOLDER, LOG_FOLDER = "shared_state", "logs"
PRIVATE_FOLDER_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
# What a person who finds the folder wants to know, by its name.
_README = {
    STATE_FOLDER: """\
# Run-time state of unified-flow

The queue of interventions, turns, sessions, memories and the document index. What is in it:
`unified-flow doctor`, `unified-flow turns list`, `interventions list`. It does not belong in git.
""",
    LOG_FOLDER: """\
# Logs of unified-flow

`errors/` has every failure, redacted, a file a day; `rag_queries.jsonl` has a line a request. They
do not belong in git.
""",
}


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


def settings_files(home: Path) -> list[Path]:
    """The files that may hold settings for `home`, the first one first."""
    return [path for path in (home / SETTINGS_FILE, home / PROJECT_FILE) if path.is_file()]


def kept_in(folder: str) -> frozenset[str]:
    """The names of what unified-flow has written into `folder`, if that is a home in use."""
    state = Path(folder, STATE_FOLDER)
    is_home = (state / "turns").is_dir() or (state / "intervention_queue.json").is_file()
    return frozenset({STATE_FOLDER, LOG_FOLDER}) if is_home else frozenset()


def _at(*parts: str) -> Callable[[Path], Path]:
    """A place in every home."""
    return lru_cache(maxsize=16)(lambda home: home.joinpath(*parts))


state_folder = _at(STATE_FOLDER)
queue_file = _at(STATE_FOLDER, "intervention_queue.json")
# Writers hold it; any program may take it with plain `filelock`.
lock_file = _at(STATE_FOLDER, "intervention_queue.json.lock")
# Of writers that wait (`storage.group_commit`).
letters_folder = _at(STATE_FOLDER, "intervention_queue.letters")
archive_file = _at(STATE_FOLDER, "intervention_archive.jsonl")
transitions_file = _at(STATE_FOLDER, "intervention_transitions.jsonl")
# What `storage.file_history` derives from the archive, the journal and the logs.
history_index = _at(STATE_FOLDER, "intervention_history.sqlite")
# What was seen when nothing of the queue was lost (`storage.queue_file`).
checked_file = _at(STATE_FOLDER, "intervention_queue.checked")
error_log_folder = _at(LOG_FOLDER, "errors")


def mark_of(path: Path) -> tuple[int, int, int] | None:
    """Inode, size and time of a file, which has not changed while they are the same; None if it is
    not there. Raises OSError."""
    try:
        found = os.stat(path)  # noqa: PTH116 - in every put
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def error_logs(home: Path, beginning: str = "") -> list[Path]:
    """The error logs whose names begin with `beginning`, the oldest first."""
    return _named(error_log_folder(home), beginning, ".jsonl")


def _named(folder: Path, beginning: str, ending: str) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - asked by every command
    except FileNotFoundError:
        return []
    return [folder / n for n in names if n.startswith(beginning) and n.endswith(ending)]


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
        give_to_owner(part, part.parent)
        if part.name in _README:
            page = part / "README.md"
            with suppress(OSError):  # a full disk: it is not worth a failure
                page.write_text(_README[part.name], "utf-8")
                page.chmod(PRIVATE_FILE_MODE)
                give_to_owner(page, part)


def replace_private(path: Path, content: str | bytes) -> None:
    """Put `content` in the place of the file, mode 0600: the old file or the new one, never a part.

    The caller holds the file's lock. Raises OSError.
    """
    make_private_folder(path.parent)
    sweep_temporary(path)
    descriptor, new = open_temporary(path)
    give_to_owner(descriptor, path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(descriptor)
        os.replace(new, path)  # noqa: PTH105
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise


def open_temporary(path: Path | str) -> tuple[int, str]:
    """(descriptor, name) of a new file beside `path`, under a name that nobody can guess."""
    folder, _, file = str(path).rpartition("/")
    name = f"{folder}/.{file.rpartition('.')[0] or file}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, PRIVATE_FILE_MODE), name


def sweep_temporary(path: Path) -> None:
    """Remove the files of `open_temporary` that writers which were killed have left. The caller
    holds the lock of `path`."""
    for left in _named(path.parent, f".{path.stem}.", ".tmp"):
        with suppress(OSError):
            left.unlink()


def sync_folder(folder: Path | str) -> None:
    """Make the names in `folder` durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_private(path: Path, flags: int) -> int:
    """A file descriptor for `path`, created with mode 0600, its folder created when missing."""
    flags |= os.O_CLOEXEC
    if not flags & os.O_EXCL:
        try:  # not `suppress`, for the cost of it: three times in every put
            return os.open(path, flags)
        except FileNotFoundError:
            pass
    flags |= os.O_CREAT
    try:
        descriptor = os.open(path, flags, PRIVATE_FILE_MODE)
    except FileNotFoundError:
        make_private_folder(path.parent)
        descriptor = os.open(path, flags, PRIVATE_FILE_MODE)
    give_to_owner(descriptor, path.parent)
    return descriptor


def create_private(path: Path) -> None:
    """Make an empty file, readable by its user alone, unless it is there.

    One that is there is not opened: POSIX drops a process's locks on a file when it closes any
    descriptor of it, and SQLite's would go (sqlite.org/howtocorrupt.html, 2.2). Raises OSError.
    """
    with suppress(FileExistsError):
        os.close(open_private(path, os.O_RDWR | os.O_EXCL))


def give_to_owner(made: int | Path, folder: Path | str) -> None:
    """What root makes in a folder belongs to its owner, and what is made in one that its group may
    write to is the group's too."""
    with suppress(OSError):  # of another user, who was quicker
        found = os.stat(folder)  # noqa: PTH116 - in every put
        if os.geteuid() == 0 and found.st_uid != 0:
            os.chown(made, found.st_uid, found.st_gid)
        if found.st_mode & stat.S_IWGRP and isinstance(made, int):
            os.fchmod(made, PRIVATE_FILE_MODE | stat.S_IRGRP | stat.S_IWGRP)
