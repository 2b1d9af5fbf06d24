"""What changes among files and folders, by the system's notifications or by polling."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from interventions.cli.terminal import note

QUIET_MS = 300  # without a further change, then it is indexed
LONGEST_MS = 3_000  # that a stream of changes can put it off
LOOK_MS = 500  # between looks at single files, and at whether a folder was replaced
POLL_MS = 1_000  # where the system watches no more folders
NOISY = frozenset({".git", "__pycache__", "node_modules"})  # folders of which nothing is indexed


def changes(roots: list[Path], private: list[Path]) -> Iterator[None]:
    """Once after every burst of changes in a root, and when one has come, gone or been replaced.

    Folders are watched. A file is looked at: editors put another file in its place, so that its
    folder would have to be watched, with all that lies below.
    """

    def counts(_: object, path: str) -> bool:
        return concerns(path, roots, private)

    means = _Means()
    while True:
        folders = [root for root in roots if root.is_dir()]
        before = [_look(root) for root in roots]
        sure = False
        try:
            for found in _watched(folders, counts, means):
                now = [_look(root) for root in roots]
                if found or now != before or not sure:
                    yield None
                sure = True  # what changed before this look has been indexed as well
                if _folders(now) != _folders(before):
                    break
                before = now
        except PermissionError:
            if means.passes_over_closed:
                raise
            means = replace(means, passes_over_closed=True)
        except FileNotFoundError:
            continue  # a folder went between the look at it and its watch
        except OSError:
            if means.polls:
                raise
            means = replace(means, polls=True)
            note(f"{clock_time()} the system watches no more folders: each is polled every second")
            note("  hint: raise fs.inotify.max_user_watches and max_user_instances (sysctl)")


@dataclass(frozen=True)
class _Means:
    """`passes_over_closed` comes second: with it, watchfiles also says nothing of a system that
    watches no more."""

    polls: bool = False
    passes_over_closed: bool = False


def _watched(
    folders: list[Path], counts: Callable[[object, str], bool], means: _Means
) -> Iterator[Collection[object]]:
    """What changed, or nothing if nothing did for LOOK_MS. Raises PermissionError for a folder that
    is closed, OSError where the system watches no more."""
    from watchfiles import watch
    from watchfiles._rust_notify import WatchfilesRustInternalError

    try:
        yield from watch(
            *folders,
            watch_filter=counts,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
            force_polling=means.polls or None,
            poll_delay_ms=POLL_MS,
            ignore_permission_denied=means.passes_over_closed,
        )
    except WatchfilesRustInternalError as exc:
        raise OSError(str(exc)) from exc


def concerns(path: str, roots: list[Path], private: list[Path]) -> bool:
    """Is what changed a root or below one?"""
    if any(_is_within(path, folder) for folder in private) or is_noise(Path(path), roots):
        return False
    return any(_is_within(path, root) for root in roots)


def _is_within(path: str, folder: Path) -> bool:
    return f"{path}/".startswith(f"{folder}/")


@dataclass(frozen=True)
class _Look:
    """Which folder a root is, or which state of a file."""

    is_folder: bool
    identity: tuple[int, ...]


def _look(root: Path) -> _Look | None:
    try:
        status = root.stat()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return _Look(True, (status.st_dev, status.st_ino))
    return _Look(False, (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size))


def _folders(looks: list[_Look | None]) -> list[_Look | None]:
    return [look if look is not None and look.is_folder else None for look in looks]


def is_noise(path: Path, roots: Collection[Path]) -> bool:
    """Whether it lies in such a folder; one that holds a root is none."""
    below = [path.relative_to(folder) for folder in roots if path.is_relative_to(folder)]
    return bool(below) and all(not NOISY.isdisjoint(part.parts[:-1]) for part in below)


def clock_time() -> str:
    return f"{datetime.now():%H:%M:%S}"
