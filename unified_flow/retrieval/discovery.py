"""The files under the paths a user names, and what is left out of them and why.

Left out is what git would ignore: .gitignore at every level, .git/info/exclude, and the user's own
rules for every repository (core.excludesFile). It cannot be seen here that an ignored file is
tracked.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from interventions.home import STATE_FOLDER, kept_in
from unified_flow.lib.printable import printable
from unified_flow.retrieval.secret_files import is_secret

_NEVER = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "__pycache__", "node_modules"})
# A folder with one of these in it is a cache (bford.info/cachedir) or a virtual environment.
_MARKERS = ("CACHEDIR.TAG", "pyvenv.cfg")
_GIT_TIMEOUT_S = 5.0
_PLACES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")  # that say where its settings are
SECRET = "may hold secrets"


class Stamp(NamedTuple):
    """Shows whether a file changed; the change time also shows edits that preserve mtime."""

    mtime_ns: int
    ctime_ns: int
    size: int


@dataclass(frozen=True)
class FoundFile:
    """`shown` is the path as passages give it: from the root's own name down.

    `data` is the content of what is no file on disk: a web page, as Markdown. A file `is_named`
    that is a root itself: it is read though it may hold secrets.
    """

    path: str
    shown: str
    stamp: Stamp
    data: bytes | None = None
    is_named: bool = False


@dataclass
class Discovery:
    """Files in order of their paths; `skipped` holds (path as shown, reason)."""

    files: list[FoundFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def discover(root: Path, exclude: Collection[Path] = ()) -> Discovery:
    """Every file under `root` (absolute) that git would not ignore, in a fixed order.

    The root itself is never ignored. Links are not followed out of the root, so that a search
    shows nothing that the user did not name. What may hold secrets is left out, but for a file that
    is the root.
    """
    found = Discovery()
    top = str(root)
    try:
        status = root.stat()
    except OSError as exc:
        found.skipped.append((printable(top), reason_of(exc)))
        return found
    if stat.S_ISREG(status.st_mode):
        found.files.append(FoundFile(top, printable(root.name), _stamp(status), is_named=True))
    elif is_secret(root.name, is_folder=True):
        found.skipped.append((printable(root.name), SECRET))
    elif stat.S_ISDIR(status.st_mode):
        _Walk(root, frozenset(map(str, exclude)), found).walk(top)
    else:
        found.skipped.append((printable(root.name), "not a regular file"))
    return found


def meant(roots: Iterable[Path | str]) -> set[Path]:
    """The files among the roots that a walk from another root is not to speak of as secret."""
    files = (root for root in roots if isinstance(root, Path) and not root.is_dir())
    return {file for file in files if is_secret(file.name)}


@dataclass
class _Walk:
    root: Path
    exclude: frozenset[str]
    found: Discovery

    def walk(self, top: str) -> None:
        """Files of a folder first, then its folders; a stack, because folders nest deeply."""
        waiting = [(top, rules_above(top))]
        while waiting:
            waiting += reversed(self._folder(*waiting.pop()))

    def _folder(self, folder: str, rules: IgnoreRules) -> list[tuple[str, IgnoreRules]]:
        """Takes the folder's files and returns its folders."""
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []  # deleted since it was listed
        except OSError as exc:
            self._skip(folder, reason_of(exc))
            return []
        names = {entry.name for entry in listed}
        if folder != str(self.root) and any(marker in names for marker in _MARKERS):
            return []
        if names & {".git", ".gitignore"}:
            rules = rules.entering(folder)
        if STATE_FOLDER in names and (kept := kept_in(folder)):
            listed = [entry for entry in listed if entry.name not in kept]
        return [(entry.path, rules) for entry in listed if self._visit(entry, rules)]

    def _visit(self, entry: os.DirEntry[str], rules: IgnoreRules) -> bool:
        """Whether it is a folder to go into."""
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_cache = is_folder and entry.name.startswith(".") and "cache" in entry.name
            if entry.path in self.exclude or entry.name in _NEVER or is_cache:
                return False
            if rules.ignore(entry.path, is_folder):
                return False
            if is_secret(self._below(entry.path), is_folder=is_folder):
                self._skip(entry.path, SECRET)
            elif is_folder:
                return True
            elif entry.is_symlink():
                self._link(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                self._skip(entry.path, "not a regular file")
            else:
                stamp = _stamp(entry.stat(follow_symlinks=False))
                self.found.files.append(FoundFile(entry.path, self._shown(entry.path), stamp))
        except FileNotFoundError:
            return False  # deleted since it was listed
        except OSError as exc:
            self._skip(entry.path, reason_of(exc))
        return False

    def _link(self, path: str) -> None:
        """A link within the root leads to what is found anyway; others are listed as skipped."""
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
        return printable(self._below(path))

    def _below(self, path: str) -> str:
        """The path from the root's own name down."""
        return path[len(str(self.root.parent)) :].lstrip("/")

    def _skip(self, path: str, reason: str) -> None:
        self.found.skipped.append((self._shown(path), reason))


def reason_of(exc: OSError) -> str:
    """Why a file cannot be read, for a person."""
    if isinstance(exc, PermissionError):
        return "permission denied"
    return (exc.strerror or type(exc).__name__).lower()


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size)


@dataclass(frozen=True)
class IgnoreRules:
    """Git's rules in force in one folder, the last word first: (the folder that a pattern is
    relative to, with its slash; the pattern; whether it ignores)."""

    patterns: tuple[tuple[str, re.Pattern[str], bool], ...] = ()

    def ignore(self, path: str, is_folder: bool) -> bool:
        for base, pattern, ignores in self.patterns:
            if _is_about(pattern, path[len(base) :], is_folder):
                return ignores
        return False

    def entering(self, folder: str) -> IgnoreRules:
        """The rules inside `folder`; a repository within another one starts anew."""
        exclude = _exclude_file(folder)
        files = [exclude, Path(folder, ".gitignore")]
        patterns = self.patterns
        if exclude is not None:
            files.insert(0, _excludes_file(*map(os.environ.get, _PLACES)))
            patterns = ()
        base = folder.rstrip("/") + "/"
        for file in filter(None, files):
            patterns = (*((base, *each) for each in _patterns(file)), *patterns)
        return IgnoreRules(patterns)


def rules_above(folder: str) -> IgnoreRules:
    """What the repository around `folder`, if there is one, says on the way down to it."""
    way = [Path(folder), *Path(folder).parents]
    top = next((i for i, each in enumerate(way) if (each / ".git").exists()), 0)
    rules = IgnoreRules()
    for each in reversed(way[1 : top + 1]):
        rules = rules.entering(str(each))
    return rules


def _is_about(pattern: re.Pattern[str], path: str, is_folder: bool) -> bool:
    """Whether the pattern matches this very entry, and not only a folder on the way to it.

    pathspec judges a path with everything above it, where git looks at each step of its walk:
    `!build/` would bring back files that another pattern ignores. The named group of its
    expressions is the slash after what matched.
    """
    if not pattern.groupindex:
        return pattern.search(path) is not None
    subject = path + "/" if is_folder else path
    return any(
        (match.end(1) if match.end(1) != -1 else match.end()) == len(subject)
        for match in pattern.finditer(subject)
    )


def _patterns(file: Path) -> Iterator[tuple[re.Pattern[str], bool]]:
    """(pattern, whether it ignores), the last one first, which has the last word."""
    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return
    if not text.strip():
        return
    from pathspec import GitIgnoreSpec  # 16 ms, and many folders have no rules

    for line in reversed(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")):
        with suppress(ValueError, re.error):  # git passes over a rule that makes no sense, too
            (compiled,) = GitIgnoreSpec.from_lines([line]).patterns
            if compiled.include is not None and compiled.regex is not None:
                yield compiled.regex, compiled.include


def _exclude_file(folder: str) -> Path | None:
    """The repository's own exclude file if `folder` is the top of one."""
    git = Path(folder, ".git")
    if git.is_file():  # a worktree or submodule: "gitdir: PATH"
        link = git.read_text(encoding="utf-8", errors="surrogateescape").partition(":")[2].strip()
        git = (git.parent / link).resolve()
        common = git / "commondir"
        if common.is_file():
            git = (git / common.read_text(encoding="utf-8").strip()).resolve()
    return git / "info" / "exclude" if git.is_dir() else None


@cache
def _excludes_file(home: str | None, config: str | None, _: str | None) -> Path | None:
    """The user's own, as git finds it: core.excludesFile, else `ignore` in git's folder of the
    configuration. Once for a configuration: git takes some milliseconds to start."""
    with suppress(OSError, subprocess.SubprocessError):  # without git its default holds
        command = ["git", "config", "--global", "--path", "--get", "core.excludesFile"]
        git = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_TIMEOUT_S)
        if git.returncode == 0:
            return Path(os.fsdecode(git.stdout.rstrip(b"\n")))
    if config:
        return Path(config, "git", "ignore")
    return Path(home, ".config", "git", "ignore") if home else None
