"""Reading what strangers wrote, in another process, within bounds of time and memory.

The libraries that read it are not ours, some of them native: they may hang, crash or take all
memory, and then one document is not read, and nothing else is lost. `parent.py` asks, `child.py`
is the process; what it runs is a function of the bytes (`package.module:function`), which yields
`Part`s and raises `UnusableError`.
"""

from __future__ import annotations

from dataclasses import dataclass

OUT_OF_MEMORY = 3  # the status that the process ends with then


@dataclass(frozen=True)
class SandboxLimits:
    """Of one document. The memory is that of the process."""

    timeout_s: float = 60.0
    memory_bytes: int = 1024 * 1024 * 1024
    file_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True)
class Part:
    """A stretch of the document under one trail of headings; `lead` is its own heading as text.

    `page` is the page or slide, from 1, where the format has them, `is_picture` whether it shows
    something and no text; `unread` says what of it could not be read; `line` where it stands, if
    its lines are the file's own.
    """

    trail: tuple[str, ...]
    lines: list[str]
    lead: tuple[str, ...] = ()
    page: int | None = None
    is_picture: bool = False
    unread: str = ""
    line: int | None = None


class UnusableError(Exception):
    """The message is the reason, for a person."""
