"""What the failure ran on: the commit, whether the tree was clean, the versions that matter.

Git is asked once per process, and again when HEAD, its branch or the index changed.
"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

GIT_TIMEOUT_S = 2.0
DEFAULT_PACKAGES = ("unified-flow", "pydantic", "httpx")


@dataclass(frozen=True)
class GitState:
    commit: str | None
    dirty: bool | None


_git_states: dict[Path, tuple[tuple[int, ...], GitState]] = {}


def environment(folder: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """`extra` is what only the caller knows: configuration, model and recipe hashes."""
    git = git_state(folder)
    return {
        "git_commit": git.commit,
        "git_dirty": git.dirty,
        "packages": dict(_packages()),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **(extra or {}),
    }


def passing_environment(folder: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """The same without starting a process, for what happens often and may never be read: whether
    the tree is clean is left out, and so is a commit that git's files do not name."""
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


def git_state(folder: Path) -> GitState:
    git_folder = _git_folder(folder)
    if git_folder is None:
        return GitState(None, None)
    # `logs/HEAD` grows with every commit, checkout and reset, whatever the branch is called.
    marks = tuple(_changed_ns(git_folder / name) for name in ("HEAD", "index", "logs/HEAD"))
    known = _git_states.get(folder)
    if known is not None and known[0] == marks:
        return known[1]
    state = _ask_git(folder)
    _git_states[folder] = (marks, state)
    return state


def _ask_git(folder: Path) -> GitState:
    command = ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch", "-uno"]
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
            # Without this a status may rewrite the index of a repository somebody is working in.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return GitState(None, None)
    commit = next((line[13:] for line in answer if line.startswith("# branch.oid ")), None)
    dirty = any(line and not line.startswith("#") for line in answer)
    return GitState(None if commit == "(initial)" else commit, dirty)


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


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@cache
def _packages() -> tuple[tuple[str, str], ...]:
    found = []
    for name in DEFAULT_PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)
