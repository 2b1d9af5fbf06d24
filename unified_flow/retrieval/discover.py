"""The files under the paths a user names, and what is left out of them and why."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from unified_flow.lib.text.printable import printable
from unified_flow.retrieval.gitignore import Rules, rules_above

_NEVER = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "__pycache__", "node_modules"})
# A folder with one of these in it is a cache (bford.info/cachedir) or a virtual environment.
_MARKERS = ("CACHEDIR.TAG", "pyvenv.cfg")
_SECRETS = frozenset({".env", ".netrc", ".pgpass", ".pypirc", ".npmrc", ".htpasswd"})


@dataclass(frozen=True)
class Stamp:
    """What tells that a file changed; the change time also sees edits that keep mtime."""

    mtime_ns: int
    ctime_ns: int
    size: int


@dataclass(frozen=True)
class FoundFile:
    """`shown` is the path as passages give it: from the root's own name down.

    `data` is the content of what is no file on disk (a web page), `extension` then says how to
    read it.
    """

    path: str
    shown: str
    stamp: Stamp
    data: bytes | None = None
    extension: str | None = None


@dataclass
class Found:
    """Files in order of their paths; `skipped` holds (path as shown, reason)."""

    files: list[FoundFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def discover(root: Path, exclude: Collection[Path] = ()) -> Found:
    """Every file under `root` (absolute) that git would not ignore, in a fixed order.

    The root itself is never ignored. Links are not followed out of the root, so that a search
    shows nothing that the user did not name.
    """
    found = Found()
    top = str(root)
    try:
        status = root.stat()
    except OSError as exc:
        found.skipped.append((printable(top), _reason(exc)))
        return found
    if stat.S_ISDIR(status.st_mode):
        _Walk(root, frozenset(map(str, exclude)), found).walk(top, rules_above(top))
    elif stat.S_ISREG(status.st_mode):
        found.files.append(FoundFile(top, printable(root.name), _stamp(status)))
    else:
        found.skipped.append((printable(root.name), "not a regular file"))
    return found


@dataclass
class _Walk:
    root: Path
    exclude: frozenset[str]
    found: Found

    def walk(self, top: str, rules: Rules) -> None:
        """Files of a folder first, then its folders; a stack, because folders nest deeply."""
        waiting = [(top, rules)]
        while waiting:
            waiting += reversed(self._folder(*waiting.pop()))

    def _folder(self, folder: str, rules: Rules) -> list[tuple[str, Rules]]:
        """Takes the folder's files and returns its folders."""
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []  # deleted meanwhile
        except OSError as exc:
            self._skip(folder, _reason(exc))
            return []
        names = {entry.name for entry in listed}
        if folder != str(self.root) and any(marker in names for marker in _MARKERS):
            return []
        if names & {".git", ".gitignore"}:
            rules = rules.entering(folder)
        return [(entry.path, rules) for entry in listed if self._visit(entry, rules)]

    def _visit(self, entry: os.DirEntry[str], rules: Rules) -> bool:
        """Whether it is a folder to go into."""
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if self._left_out(entry, is_folder) or rules.ignore(entry.path, is_folder):
                return False
            if is_folder:
                return True
            if entry.is_symlink():
                self._link(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                self._skip(entry.path, "not a regular file")
            elif is_secret(entry.name):
                self._skip(entry.path, "may hold secrets")
            else:
                stamp = _stamp(entry.stat(follow_symlinks=False))
                self.found.files.append(FoundFile(entry.path, self._shown(entry.path), stamp))
        except FileNotFoundError:
            return False  # deleted meanwhile
        except OSError as exc:
            self._skip(entry.path, _reason(exc))
        return False

    def _left_out(self, entry: os.DirEntry[str], is_folder: bool) -> bool:
        if entry.path in self.exclude:
            return True
        name = entry.name
        return name in _NEVER or (is_folder and name.startswith(".") and "cache" in name)

    def _link(self, path: str) -> None:
        """A link within the root leads to what is found anyway; others are left out aloud."""
        try:
            target = Path(path).resolve(strict=True)
        except FileNotFoundError:
            self._skip(path, "link to nothing")
        except (OSError, RuntimeError):
            self._skip(path, "link that goes in a circle")
        else:
            if not target.is_relative_to(self.root):
                self._skip(path, "link that leads out of the folder")

    def _shown(self, path: str) -> str:
        above = str(self.root.parent)
        return printable(path[len(above) :].lstrip("/"))

    def _skip(self, path: str, reason: str) -> None:
        self.found.skipped.append((self._shown(path), reason))


def is_secret(name: str) -> bool:
    """Whether a file of this name mostly holds credentials; such files are no documents."""
    return name in _SECRETS or name.startswith(".env.") or name.endswith((".pem", ".key"))


def _reason(exc: OSError) -> str:
    if isinstance(exc, PermissionError):
        return "permission denied"
    return (exc.strerror or type(exc).__name__).lower()


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size)
