"""The traceback as a person wants to read it: their own code first, with the source around it.

Captured at raise time, because the source on disk may be edited before anybody looks.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from types import TracebackType

# What a foreign object's own code may raise and the caller's error must win over; not an interrupt.
FOREIGN = (Exception, SystemExit, GeneratorExit)
SOURCE_LINES_EITHER_SIDE = 5
MAX_SOURCE_FRAMES = 8
MAX_OTHER_FRAMES = 20
MAX_CHAIN = 4
MAX_GROUP = 5


@dataclass(frozen=True)
class CapturedTraceback:
    """Named as the fields of an entry. `culprit` is the innermost in-app `module:function`,
    `location` its `file:line`."""

    exception_type: str
    error_message: str
    traceback: str
    culprit: str
    location: str


@dataclass(frozen=True)
class _Frame:
    file: str
    line: int
    function: str
    module: str
    in_app: bool
    source_globals: dict[str, object]


def capture(error: BaseException) -> CapturedTraceback:
    frames = _frames(error.__traceback__)
    blame = next((f for f in reversed(frames) if f.in_app), frames[-1] if frames else None)
    return CapturedTraceback(
        exception_type=qualified_name(type(error)),
        error_message=text_of(error),
        traceback="\n".join(_describe(error, frames)),
        culprit=f"{blame.module}:{blame.function}" if blame else "",
        location=f"{blame.file}:{blame.line}" if blame else "",
    )


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
        lines.append("")
        lines.append("Caused by:" if error.__cause__ else "While handling:")
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
    source = linecache.getlines(frame.file, frame.source_globals)
    first = max(frame.line - SOURCE_LINES_EITHER_SIDE, 1)
    last = min(frame.line + SOURCE_LINES_EITHER_SIDE, len(source))
    return [
        f"  {'>' if number == frame.line else ' '} {number:5} | {source[number - 1].rstrip()[:200]}"
        for number in range(first, last + 1)
    ]


def _frames(trace: TracebackType | None) -> list[_Frame]:
    return [
        _Frame(
            file=frame.f_code.co_filename,
            line=line or frame.f_code.co_firstlineno,
            function=frame.f_code.co_qualname,
            module=frame.f_globals.get("__name__") or Path(frame.f_code.co_filename).stem,
            in_app=_is_in_app(frame.f_code.co_filename),
            source_globals=frame.f_globals,
        )
        for frame, line in walk_tb(trace)
    ]


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
