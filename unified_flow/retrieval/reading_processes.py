"""Many files read at once, each process a core: reading them takes ten times as long as storing."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from typing import Self

from unified_flow.errors import RetrievalError
from unified_flow.lib.sandbox import SandboxLimits
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.retrieval.discovery import FoundFile
from unified_flow.retrieval.file_reading import ReadFile, read_file

_BATCH = 8  # files
_WORTHWHILE = 200  # files: fewer are read in the time that processes take to start
_MOST = 4  # processes: storing what they read keeps one more busy

Known = tuple[FoundFile, bytes | None]
"""A file, and the digest of what the index holds of it."""


def read_files(
    files: Sequence[Known], bounds: SandboxLimits, language: Callable[[], str]
) -> Generator[ReadFile]:
    """In order. `language` is asked for as reading goes on. Close it: it may hold processes."""
    count = min(os.cpu_count() or 1, _MOST)
    if len(files) < _WORTHWHILE or count == 1:
        with Converter(bounds) as converter:
            for file, known in files:
                yield read_file(file, known, language(), converter)
        return
    batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
    with ExitStack() as stack:
        processes = [stack.enter_context(_Process(bounds)) for _ in range(count)]
        # Two batches each: one to go on with while the other is stored.
        for number, batch in enumerate([*batches, *[[]] * 2 * count]):
            process = processes[number % count]
            if number >= 2 * count:
                yield from process.answer()
            process.ask(batch, language())


class _Process:
    """Not of multiprocessing, which would run the caller's own main module in it."""

    def __init__(self, bounds: SandboxLimits) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._send(bounds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, batch: Sequence[Known], language: str) -> None:
        self._send((batch, language))

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError as exc:
            raise self._ended() from exc

    def answer(self) -> list[ReadFile]:
        assert self._process.stdout is not None
        try:
            answer: list[ReadFile] = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError) as exc:
            raise self._ended() from exc
        return answer

    def _ended(self) -> RetrievalError:
        code = self._process.wait()
        return RetrievalError(
            f"a process that was reading documents ended ({code})",
            hint="Nothing of the index has changed. Is there memory enough?",
        )


def main() -> None:
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not stand among the answers
    try:
        with Converter(pickle.load(source)) as converter:
            while True:
                batch, language = pickle.load(source)
                read = [read_file(file, known, language, converter) for file, known in batch]
                pickle.dump(read, answers)
                answers.flush()
    except (EOFError, BrokenPipeError):
        pass  # the process that asked is gone


if __name__ == "__main__":
    main()
