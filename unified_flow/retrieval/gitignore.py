"""Which files git would ignore: .gitignore at every level, .git/info/exclude, and the user's own
rules for every repository (core.excludesFile).

It cannot be seen here that an ignored file is tracked.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_GIT_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class _Layer:
    """The patterns of one file: (regular expression, whether it ignores), last one first."""

    base: str  # the folder they are relative to, with its slash
    patterns: tuple[tuple[re.Pattern[str], bool], ...]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        relative = path[len(self.base) :]
        for pattern, ignores in self.patterns:
            if _is_about(pattern, relative, is_folder):
                return ignores
        return None


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


@dataclass(frozen=True)
class Rules:
    """The rules in force in one folder, innermost last."""

    layers: tuple[_Layer, ...] = ()

    def ignore(self, path: str, is_folder: bool) -> bool:
        for layer in reversed(self.layers):
            verdict = layer.verdict(path, is_folder)
            if verdict is not None:
                return verdict
        return False

    def entering(self, folder: str) -> Rules:
        """The rules inside `folder`; a repository within another one starts anew."""
        exclude = _exclude_file(folder)
        layers = self.layers if exclude is None else ()
        everywhere = None if exclude is None else _users_own_file()
        for file in filter(None, (everywhere, exclude, Path(folder, ".gitignore"))):
            if patterns := _patterns(file):
                layers = (*layers, _Layer(folder.rstrip("/") + "/", patterns))
        return self if layers == self.layers else Rules(layers)


def rules_above(folder: str) -> Rules:
    """What the repository around `folder`, if there is one, says on the way down to it."""
    way = [Path(folder), *Path(folder).parents]
    top = next((i for i, each in enumerate(way) if (each / ".git").exists()), 0)
    rules = Rules()
    for each in reversed(way[1 : top + 1]):
        rules = rules.entering(str(each))
    return rules


def _patterns(file: Path) -> tuple[tuple[re.Pattern[str], bool], ...]:
    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return ()
    if not text.strip():
        return ()
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return tuple(filter(None, map(_pattern, reversed(lines))))


def _pattern(line: str) -> tuple[re.Pattern[str], bool] | None:
    from pathspec import GitIgnoreSpec  # 16 ms, and many folders have no rules

    try:
        (compiled,) = GitIgnoreSpec.from_lines([line]).patterns
    except (ValueError, re.error):  # git passes over a rule that makes no sense, too
        return None
    if compiled.include is None or compiled.regex is None:
        return None
    return compiled.regex, compiled.include


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


def _users_own_file() -> Path | None:
    """As git finds it: core.excludesFile, else `ignore` in git's folder of the configuration."""
    place = {name: os.environ.get(name) for name in ("HOME", "XDG_CONFIG_HOME")}
    return _asked_of_git(*place.values(), os.environ.get("GIT_CONFIG_GLOBAL"))


@cache
def _asked_of_git(home: str | None, config: str | None, _: str | None) -> Path | None:
    """Once for a configuration: git takes some milliseconds to start."""
    with suppress(OSError, subprocess.SubprocessError):  # without git its default holds
        asked = ["git", "config", "--global", "--path", "--get", "core.excludesFile"]
        said = subprocess.run(asked, capture_output=True, check=False, timeout=_GIT_TIMEOUT_S)
        if said.returncode == 0:
            return Path(os.fsdecode(said.stdout.rstrip(b"\n")))
    if config:
        return Path(config, "git", "ignore")
    return Path(home, ".config", "git", "ignore") if home else None
