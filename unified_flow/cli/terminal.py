"""What a command prints for a person who watches, and for a script."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from interventions.cli.terminal import note, say, width
from interventions.plaintext import fit, one_line

_ITEM = re.compile(r" *(?:\d+\.|[-*]) +| +")


def say_object(value: Any) -> None:
    """One JSON object on one line, for scripts."""
    say(json.dumps(value, ensure_ascii=False))


def say_result(as_json: bool, value: Any, text: str) -> None:
    """What a command did: for a script the object, for a person a line."""
    say_object(value) if as_json else say(text)


def say_list(as_json: bool, value: Any, lines: Sequence[str], nothing: str) -> None:
    """A list: for a script the object, for a person its lines, or that there is `nothing` yet."""
    if as_json:
        say_object(value)
    elif lines:
        say("\n".join(lines))
    else:
        note(nothing)


def on_terminal() -> bool:
    """A person watches: both streams are terminals."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def beginning(text: str, width: int) -> str:
    """`text` as one line of at most `width` columns, its escape sequences shown."""
    return fit(one_line(text), width).rstrip()


def wrapped(text: str) -> str:
    """For a person, its long lines broken between words; the items of a list stay in line. What
    is indented is code, and stays as it is."""
    if not on_terminal():
        return text
    return "\n".join(_broken(line) for line in text.split("\n"))


def _broken(line: str) -> str:
    if len(line) < width() or line.startswith("    "):
        return line
    item = _ITEM.match(line)
    rest = " " * len(item[0]) if item else ""
    pieces = textwrap.wrap(
        line, width() - 1, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(pieces)


def counted(number: int, what: str) -> str:
    """`1 claim`, `2 claims`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def held(files: int, chunks: int) -> str:
    """What an index holds: `1 file, 2 chunks`."""
    return f"{counted(files, 'file')}, {counted(chunks, 'chunk')}"


DELAY_S = 0.3


@contextmanager
def progress_bar(
    label: str, *, show: bool, in_bytes: bool = False
) -> Iterator[Callable[..., None] | None]:
    """A callback (done, total), and the label if it changes. The bar appears only once the work
    has taken a moment."""
    if not show:
        yield None
        return
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn() if in_bytes else MofNCompleteColumn(),
        Remaining(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(label)
    begun = monotonic()

    def advance(done: int, total: int, now: str = label) -> None:
        if not progress.live.is_started and monotonic() - begun > DELAY_S:
            progress.start()
        progress.update(task, completed=done, total=total, description=now)

    try:
        yield advance
    finally:
        progress.stop()
