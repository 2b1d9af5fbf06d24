"""Reading what strangers wrote, in another process, within bounds of time and memory.

The libraries that read it are not ours, some of them native: they may hang, crash or take all
memory, and then one document is not read, and nothing else is lost. `parent.py` asks, `child.py`
is the process; what it runs is a function of the bytes (`package.module:function`), which yields
`Section`s and raises `UnusableError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OUT_OF_MEMORY = 3  # the status that the process ends with then


@dataclass(frozen=True)
class SandboxLimits:
    """What reading one document may take; the memory is that of the process."""

    timeout_s: float = 60.0
    memory_bytes: int = 1024 * 1024 * 1024
    file_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True)
class Section:
    """Lines of a document under one trail of headings, outermost first.

    `lead` holds the lines of its own heading, which end right before it. `page` is the page or
    slide, from 1, where the format has them; no chunk goes over the end of one. `is_picture` says
    whether it shows something and no text, `unread` what of it could not be read. `line` is the
    1-based number of `lines[0]`, 0 if the lines are not the file's own.
    """

    trail: tuple[str, ...]
    lines: Sequence[str]
    lead: Sequence[str] = ()
    page: int | None = None
    is_picture: bool = False
    unread: str = ""
    line: int = 0


class UnusableError(Exception):
    """The message is the reason, for a person."""
