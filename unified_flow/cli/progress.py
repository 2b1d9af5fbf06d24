"""A progress bar on stderr for long work; nothing where nobody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

DELAY_S = 0.3


@contextmanager
def bar(label: str, *, show: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, total). The bar appears only once the work has taken a moment."""
    if not show:
        yield None
        return
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    progress = Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(label)
    begun = monotonic()

    def advance(done: int, total: int) -> None:
        if not progress.live.is_started and monotonic() - begun > DELAY_S:
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        progress.stop()
