"""What the failure ran on: the commit, whether the tree was clean, the versions that matter.

The commit is read from git's own files. Git itself is asked once per process whether the tree is
clean, and again when HEAD, its branch or the index changed.
"""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from interventions.home import mark_of

GIT_TIMEOUT_S = 2.0
DEFAULT_PACKAGES = ("unified-flow", "pydantic", "httpx")


def environment(folder: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """`extra` is what only the caller knows: configuration, model and recipe hashes."""
    return {
        "git_commit": head_commit(folder),
        "git_dirty": is_dirty(folder),
        "platform": f"{platform.system()} {platform.machine()}",
        **passing_environment(folder, extra),
    }


def passing_environment(folder: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """The same without starting a process, for what happens often and may never be read: whether
    the tree is clean is left out."""
    commit = head_commit(folder)
    return {
        **({"git_commit": commit} if commit else {}),
        "packages": dict(_packages()),
        "python": platform.python_version(),
        **(extra or {}),
    }


def head_commit(folder: Path) -> str | None:
    """The commit that HEAD names, read from git's own files; None if they do not name one.

    A linked worktree keeps its branches in the main one; an old branch is packed with others.
    """
    git_folder = _git_folder(folder)
    if git_folder is None:
        return None
    try:
        named = (git_folder / "HEAD").read_text().strip()
        reference = named.removeprefix("ref: ")
        if reference == named:
            return named
        shared = git_folder / "commondir"
        common = git_folder / shared.read_text().strip() if shared.is_file() else git_folder
        if (common / reference).is_file():
            return (common / reference).read_text().strip()
        lines = (common / "packed-refs").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    packed = (line.partition(" ") for line in lines)
    return next((commit for commit, _, name in packed if name == reference), None)


def is_dirty(folder: Path) -> bool | None:
    """None without a repository, or if git does not answer."""
    git_folder = _git_folder(folder)
    if git_folder is None:
        return None
    # `logs/HEAD` grows with every commit, checkout and reset, whatever the branch is called.
    try:
        marks = [mark_of(git_folder / name) for name in ("HEAD", "index", "logs/HEAD")]
    except OSError:
        return None
    return _ask_git(folder, *marks)


@lru_cache(maxsize=16)
def _ask_git(folder: Path, *marks: object) -> bool | None:
    """Again when one of the marks is another."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), "status", "--porcelain", "-uno"],
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
            # Without this a status may rewrite the index of a repository somebody is working in.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(answer.stdout)


@cache
def _git_folder(folder: Path) -> Path | None:
    for parent in (folder, *folder.parents):
        mark = parent / ".git"
        if mark.is_dir():
            return mark
        if mark.is_file():
            try:
                target = mark.read_text().removeprefix("gitdir:").strip()
            except (OSError, UnicodeDecodeError):
                return None
            return (parent / target).resolve()
    return None


@cache
def _packages() -> tuple[tuple[str, str], ...]:
    from importlib import metadata  # late: a reader of the queue never needs it

    found = {name: next(iter(metadata.distributions(name=name)), None) for name in DEFAULT_PACKAGES}
    return tuple((name, one.version) for name, one in found.items() if one)
