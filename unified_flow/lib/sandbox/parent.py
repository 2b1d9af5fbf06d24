"""Asking the process that reads strangers' documents, and ending it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from typing import Self

from unified_flow.lib.sandbox import OUT_OF_MEMORY, SandboxLimits, Section, UnusableError

_MAX_ANSWER = 512 * 1024 * 1024


class Converter:
    """Starts its process with the first document and ends it with `close`. One at a time."""

    def __init__(self, bounds: SandboxLimits | None = None) -> None:
        self.bounds = bounds or SandboxLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def kill(self) -> None:
        """End the process from another thread, so that `convert` comes to its end."""
        process = self._process
        if process is not None:
            process.kill()

    def convert(self, function: str, data: bytes) -> list[Section]:
        """What `function` ("package.module:name") makes of it. Raises UnusableError, whose message
        is the reason why not."""
        with self._lock:
            try:
                answer = json.loads(self._ask(function, data))
            except BaseException:
                self.close()  # it may still be busy with this one
                raise
        if "reason" in answer:
            raise UnusableError(answer["reason"])
        return [
            Section(tuple(trail), lines, tuple(lead), *more)
            for trail, lines, lead, *more in answer["sections"]
        ]

    def _ask(self, function: str, data: bytes) -> bytes:
        process = self._running()
        deadline = time.monotonic() + self.bounds.timeout_s
        head = {"function": function, "bytes": len(data), "timeout_s": self.bounds.timeout_s}
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(head).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
        except BrokenPipeError as exc:
            raise UnusableError(self._why_it_ended()) from exc
        return self._line(process, deadline)

    def _line(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        blocks: list[bytes] = []
        size = 0
        answers = select.poll()  # not select(), which knows no descriptor above 1023
        answers.register(descriptor, select.POLLIN)
        while not (blocks and blocks[-1].endswith(b"\n")):
            left = deadline - time.monotonic()
            if left <= 0 or not answers.poll(left * 1000):
                raise UnusableError(f"converting it took more than {self.bounds.timeout_s:g} s")
            block = os.read(descriptor, 1 << 20)
            if not block:
                raise UnusableError(self._why_it_ended())
            blocks.append(block)
            size += len(block)
            if size > _MAX_ANSWER:
                raise UnusableError("it converts to more text than any document holds")
        return b"".join(blocks)

    def _why_it_ended(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        if code == OUT_OF_MEMORY:
            memory = self.bounds.memory_bytes / 1024 / 1024
            return f"converting it took more than {memory:,.0f} MiB of memory"
        return f"the converter ended on it ({f'signal {-code}' if code < 0 else f'status {code}'})"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it ended between two documents
        if self._process is None:
            # Nothing of the caller's environment but what Python needs to find this package;
            # -P so that no module is taken from the folder that is being indexed.
            kept = {key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ}
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", "-m", f"{__package__}.child",
                 str(self.bounds.memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=kept,
                start_new_session=True,
            )  # fmt: skip
        return self._process
