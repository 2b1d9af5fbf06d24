"""The folders that file tools may read, and opening a file so that it cannot be another one.

A path is resolved with all its links before anything is opened. It is then opened from its root
down, one component at a time and without following links, so that a link put in its way
meanwhile is refused too. Only regular files are opened: a pipe or a device would wait, or act.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from unified_flow.errors import ConfigError, FileUnusableError, PathRefusedError
from unified_flow.lib.printable import brief_repr, printable
from unified_flow.retrieval.discovery import FoundFile, discover
from unified_flow.retrieval.secret_files import is_secret, secret_in

_SHOWN = 200
_INTO = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class SecretFileError(PathRefusedError):
    """The file holds keys or credentials."""


@dataclass(frozen=True)
class Located:
    """A file inside `root`; `real` has no links in it, `shown` is how passages name it."""

    root: Path
    real: Path

    @property
    def shown(self) -> str:
        return printable(str(self.real.relative_to(self.root.parent)))


class Roots:
    """`exclude` are paths inside the roots that stay closed (the flow's own state)."""

    def __init__(self, paths: Iterable[Path | str], exclude: Iterable[Path | str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(_root(Path(path)) for path in paths))
        self.exclude = tuple(Path(path).resolve() for path in exclude)

    def locate(self, path: str) -> Located:
        """`path` is absolute, relative to a root, or begins with a root's own name.

        Raises PathRefusedError for what lies outside, whether it exists or not, and
        FileUnusableError for what is not there.
        """
        if not _is_possible(path):
            raise PathRefusedError(
                f"{brief_repr(path, _SHOWN)} is no path: it holds characters that no path has",
                hint="Name a file as a search shows it.",
            )
        resolved = [(c, self._inside(_resolved(c))) for c in self._candidates(path)]
        there = [located for candidate, located in resolved if _is_there(candidate)]
        if there and there[0] is not None:
            return there[0]
        if there or not any(located for _, located in resolved):
            raise self._refused(path)
        raise FileUnusableError(
            f"there is no file {brief_repr(path, _SHOWN)}",
            hint="file.glob lists the files there are.",
        )

    def read(self, located: Located, max_bytes: int) -> bytes:
        """Read at most `max_bytes` + 1 of the file, so that a longer one shows.

        Raises PathRefusedError (SecretFileError for what it holds), FileUnusableError, and
        PermissionError as it comes.
        """
        with os.fdopen(self._open(located), "rb") as file:
            data = file.read(max_bytes + 1)
        if held := secret_in(data, located.real.suffix.casefold()):
            raise SecretFileError(f"{located.shown} holds {held}", hint="Name another file.")
        return data

    def files(self) -> tuple[list[FoundFile], dict[str, int]]:
        """Every file that is not ignored, once, and how many were left out for which reason."""
        found: dict[str, FoundFile] = {}
        skipped: dict[str, int] = {}
        for root in self.paths:
            here = discover(root, self.exclude)
            for file in here.files:
                found.setdefault(file.path, file)
            for _, reason in here.skipped:
                skipped[reason] = skipped.get(reason, 0) + 1
        return list(found.values()), skipped

    def _candidates(self, path: str) -> list[Path]:
        if path.startswith("/"):
            return [Path(path)]
        first = path.split("/", 1)[0]
        named = [root.parent / path for root in self.paths if root.name == first]
        return named + [root / path for root in self.paths]

    def _inside(self, real: Path) -> Located | None:
        if any(real.is_relative_to(closed) for closed in self.exclude):
            return None
        # The innermost root, so that a file has one name however the roots overlap.
        holding = [root for root in self.paths if real.is_relative_to(root)]
        root = max(holding, key=lambda root: len(root.parts), default=None)
        if root is None or is_secret(str(real.relative_to(root.parent))):
            return None
        return Located(root, real)

    def _refused(self, path: str) -> PathRefusedError:
        allowed = ", ".join(printable(str(root)) for root in self.paths) or "none"
        return PathRefusedError(
            f"{brief_repr(path, _SHOWN)} is not among the files that may be read",
            hint=f"Allowed: {allowed}. The setting `roots` can allow more.",
        )

    def _open(self, located: Located) -> int:
        """A descriptor of the regular file that lies there without any link on the way."""
        parts = located.real.relative_to(located.root).parts
        folder, names = (
            (located.root, parts) if parts else (located.root.parent, (located.root.name,))
        )
        at = os.open(folder, _INTO)
        try:
            for name in names[:-1]:
                at, above = os.open(name, _INTO, dir_fd=at), at
                os.close(above)
            _require_regular(os.stat(names[-1], dir_fd=at, follow_symlinks=False).st_mode, located)
            descriptor = os.open(names[-1], _READ, dir_fd=at)
        except FileNotFoundError as exc:
            raise FileUnusableError(f"there is no file {located.shown}") from exc
        except OSError as exc:
            if exc.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                raise _moved(located) from exc
            raise
        finally:
            os.close(at)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise _moved(located)
        return descriptor


def _root(path: Path) -> Path:
    try:
        return path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as exc:
        raise ConfigError(
            f"the folder {brief_repr(str(path), _SHOWN)}, which file tools may read, cannot be"
            f" used: {getattr(exc, 'strerror', None) or exc}",
            hint="Mend the setting `roots`.",
        ) from exc


def _require_regular(mode: int, located: Located) -> None:
    if stat.S_ISDIR(mode):
        raise FileUnusableError(
            f"{located.shown} is a folder", hint="file.glob lists the files in it."
        )
    if stat.S_ISLNK(mode):
        raise _moved(located)
    if not stat.S_ISREG(mode):
        raise PathRefusedError(
            f"{located.shown} is a pipe, a socket or a device", hint="Name a regular file."
        )


def _moved(located: Located) -> PathRefusedError:
    return PathRefusedError(
        f"{located.shown} is a link that goes in a circle, or was replaced while it was opened",
        hint="See where it leads, and who writes there.",
    )


def _resolved(path: Path) -> Path:
    """Follows every link, also one that leads to nothing."""
    try:
        return Path(os.path.realpath(path))
    except OSError as exc:  # a link that was replaced between two looks at it
        raise PathRefusedError(
            f"{brief_repr(str(path), _SHOWN)} was replaced while it was looked at",
            hint="See who writes there.",
        ) from exc


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except OSError as exc:
        # What may not be looked at is there: opening it says why it cannot be read.
        return exc.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
    return True


def _is_possible(path: str) -> bool:
    with suppress(UnicodeEncodeError):
        return b"\0" not in os.fsencode(path)
    return False
