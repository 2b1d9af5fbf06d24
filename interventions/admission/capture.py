"""What is known at raise time: the traceback as a person wants to read it, their own code first,
and the source around it, before somebody edits it; and what the failure ran on: the commit, whether
the tree was clean, the versions that matter.

The commit is read from git's own files. Git itself is asked once per process whether the tree is
clean, and again when HEAD, its branch or the index changed.
"""

from __future__ import annotations

import linecache
import os
import platform
import subprocess
import sys
import sysconfig
from functools import cache, lru_cache
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any

from interventions.home import mark_of

# What a foreign object's own code may raise and the caller's error must win over; not an interrupt.
FOREIGN = (Exception, SystemExit, GeneratorExit)
SOURCE_LINES_EITHER_SIDE = 5
MAX_SOURCE_FRAMES = 8
MAX_OTHER_FRAMES = 20
MAX_CHAIN = 4
MAX_GROUP = 5
GIT_TIMEOUT_S = 2.0
DEFAULT_PACKAGES = ("unified-flow", "pydantic", "httpx")


class _Frame:
    def __init__(self, frame: FrameType, line: int | None) -> None:
        self.file, self.function = frame.f_code.co_filename, frame.f_code.co_qualname
        self.line = line or frame.f_code.co_firstlineno
        self.globals = frame.f_globals
        self.module = frame.f_globals.get("__name__") or Path(self.file).stem
        self.in_app = _is_in_app(self.file)


def capture(error: BaseException) -> dict[str, str]:
    """Fields of an entry. `culprit` is the innermost in-app `module:function`, `location` its
    `file:line`."""
    frames = _frames(error.__traceback__)
    blame = next((f for f in reversed(frames) if f.in_app), frames[-1] if frames else None)
    return {
        "exception_type": qualified_name(type(error)),
        "error_message": text_of(error),
        "traceback": "\n".join(_describe(error, frames)),
        "culprit": f"{blame.module}:{blame.function}" if blame else "",
        "location": f"{blame.file}:{blame.line}" if blame else "",
    }


def qualified_name(kind: type[BaseException]) -> str:
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def text_of(value: object) -> str:
    try:
        return str(value)
    except FOREIGN as error:
        return f"<{type(value).__name__}: str raised {type(error).__name__}>"


def _describe(error: BaseException, frames: list[_Frame]) -> list[str]:
    lines = _one_exception(error, frames, with_source=True)
    seen = {id(error)}
    for _ in range(MAX_CHAIN):
        parent = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if parent is None or id(parent) in seen:
            break
        seen.add(id(parent))
        lines += ["", "Caused by:" if error.__cause__ else "While handling:"]
        lines += _one_exception(parent, _frames(parent.__traceback__), with_source=True)
        error = parent
    return lines


def _one_exception(error: BaseException, frames: list[_Frame], *, with_source: bool) -> list[str]:
    lines = [f"{qualified_name(type(error))}: {text_of(error)}"]
    notes = error.__dict__.get("__notes__")  # without code of the error's own
    lines += [f"  note: {text_of(note)}" for note in (notes if isinstance(notes, list) else ())]
    own = [frame for frame in reversed(frames) if frame.in_app] or frames[-1:]
    for number, frame in enumerate(own):
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
        if with_source and number < MAX_SOURCE_FRAMES:
            lines += _source(frame)
    others = [frame for frame in reversed(frames) if not frame.in_app and frame not in own]
    if others:
        lines.append(f"  In libraries, innermost first ({len(others)}):")
        lines += [f"    {f.file}:{f.line} in {f.function}" for f in others[:MAX_OTHER_FRAMES]]
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions[:MAX_GROUP]:
            lines.append(f"  Member {type(member).__name__}:")
            inner = _one_exception(member, _frames(member.__traceback__), with_source=False)
            lines += [f"    {line}" for line in inner]
    return lines


def _source(frame: _Frame) -> list[str]:
    source = linecache.getlines(frame.file, frame.globals)
    first = max(frame.line - SOURCE_LINES_EITHER_SIDE, 1)
    last = min(frame.line + SOURCE_LINES_EITHER_SIDE, len(source))
    return [
        f"  {'>' if number == frame.line else ' '} {number:5} | {source[number - 1].rstrip()[:200]}"
        for number in range(first, last + 1)
    ]


def _frames(trace: TracebackType | None) -> list[_Frame]:
    return [_Frame(frame, line) for frame, line in walk_tb(trace)]


_NOT_IN_APP = (
    str(Path(__file__).parent.parent) + os.sep,
    sys.base_prefix + "/lib/python",
    *{sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")},
)


@lru_cache(maxsize=4096)
def _is_in_app(filename: str) -> bool:
    """Neither the standard library, nor an installed package, nor this package itself."""
    if filename.startswith("<") or "site-packages" in filename or "dist-packages" in filename:
        return filename.startswith(("<stdin>", "<string>", "<ipython"))
    return not filename.startswith(_NOT_IN_APP)


def environment(folder: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """`extra` is what only the caller knows: configuration, model and recipe hashes."""
    git = {"git_commit": head_commit(folder), "git_dirty": is_dirty(folder)}
    machine = {"platform": f"{platform.system()} {platform.machine()}"}
    return {**git, **machine, **passing_environment(folder, extra)}


def passing_environment(folder: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """The same without starting a process, for what happens often and may never be read: whether
    the tree is clean is left out."""
    commit = head_commit(folder)
    found = {"git_commit": commit} if commit else {}
    versions = {"packages": dict(_packages()), "python": platform.python_version()}
    return {**found, **versions, **(extra or {})}


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
    """Whether tracked files have changes; git is asked again when a mark has changed."""
    # With its locks a status may rewrite the index of a repository somebody is working in.
    git = ["git", "--no-optional-locks", "-C", str(folder)]
    status = [*git, "status", "--porcelain", "-uno"]
    try:
        answer = subprocess.run(status, capture_output=True, timeout=GIT_TIMEOUT_S, check=True)
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
