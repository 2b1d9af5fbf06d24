"""llama.cpp's own server as a child process on loopback, for a language model from a file.

The file is checked before a process is started for it; the process ends with its parent.

`unified-flow model serve` keeps one warm for other commands: it notes its address and key in
`shared_state/local_model.json`, readable by its user alone, and locks that file while it lives; a
note without a lock counts for nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from interventions.errors import how_to_install
from interventions.home import open_private
from unified_flow.errors import ConfigError, ModelError
from unified_flow.turns.lock import is_held

ALIAS = "local"
_NOTE = "local_model.json"
_MAGIC = b"GGUF"
NO_FILE_HINT = (
    "Name a .gguf file: --model local:/path/model.gguf, path under [local], model under [vectors]"
)
_GB = 1_000_000_000
# Beside the weights: the cache of the context, the buffers, the process itself (measured 1.5 GB
# for 1.1 GB of weights at 8,192 tokens).
_EXTRA_BYTES = 400_000_000
_STAMP = re.compile(r"^[\d.]+ (?:[DIWE] )?")
_TROUBLE = re.compile(r"error|fail|insufficient|unable", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"(?:failed to|cannot) allocate|insufficient memory|bad_alloc", re.IGNORECASE
)
_LOG_SHOWN = 300
_ENDS_WITHIN_S = 5.0


class LocalModelError(ModelError):
    """The model's process could not be started, or has died."""


@dataclass(frozen=True)
class Address:
    url: str
    key: str


class LocalServer:
    """A llama.cpp server for chat or for embeddings. Blocking; `start` and `stop` may be called
    from any thread, and `stop` while starting."""

    def __init__(
        self, path: Path, *, context_tokens: int, start_timeout_s: float, embedding: bool = False
    ) -> None:
        self.path = path
        self._embedding = embedding
        self._context_tokens = context_tokens
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] | None = None
        self._address: Address | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> Address:
        """Start the server unless it runs; returns where it listens. Raises ConfigError for a file
        that cannot be a model here or a package that is missing, LocalModelError for what else ends
        it."""
        with self._lock:
            if self._address is not None and self._process is not None:
                if self._process.poll() is None:
                    return self._address
                self._end()
            check_model_file(self.path)
            self._address = self._launch()
            return self._address

    def stop(self) -> None:
        process = self._process
        if process is not None and self._lock.locked():
            process.kill()  # a call that waits for its start learns that it has ended
        with self._lock:
            self._end()

    def died(self, within_s: float | None = 0.0) -> str | None:
        """How it ended, if it has or does so within that time (None: whenever that is)."""
        if self._process is None:
            return None
        try:
            return f"{_exit_status(self._process.wait(within_s))}{self._tail()}"
        except subprocess.TimeoutExpired:
            return None

    def _launch(self) -> Address:
        key = secrets.token_urlsafe(24)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "unified_flow.servers.llama_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C reaches the parent alone
        )
        order = {
            "path": str(self.path),
            "alias": ALIAS,
            "key": key,
            "context_tokens": self._context_tokens,
            # More than these only slow each other down.
            "threads": len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1,
            "embedding": self._embedding,
        }
        deadline = threading.Timer(self._start_timeout_s, self._process.kill)
        deadline.start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        try:
            with suppress(BrokenPipeError):  # it has ended before it read its order
                self._process.stdin.write(json.dumps(order) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
        finally:
            late = not deadline.is_alive()
            deadline.cancel()
        answer: dict[str, str] = json.loads(line or "{}")
        if "url" in answer:
            return Address(answer["url"], key)
        trouble = self._start_error(answer, late)
        self._end()
        raise trouble

    def _start_error(self, answer: dict[str, str], late: bool) -> Exception:
        if "missing" in answer:
            return ConfigError(answer["error"], hint=how_to_install("local"))
        if late:
            return LocalModelError(
                f"{self.path} was not loaded within {self._start_timeout_s:g} s",
                hint="raise start_timeout_s under [local], or take a smaller model",
            )
        assert self._process is not None
        code = self._process.wait()  # before that its log is not whole
        ended = answer.get("error") or _exit_status(code)
        ended += self._tail()
        return LocalModelError(f"llama.cpp cannot serve {self.path}: {ended}", hint=_hint(ended))

    def _tail(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        return _log_excerpt(self._log.read().decode("utf-8", "replace"))

    def _end(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):  # it has ended before it read its order
                process.stdin.close()  # which is its sign to end
            try:
                process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        if self._log is not None:
            self._log.close()
            self._log = None


def _log_excerpt(text: str) -> str:
    """Its first errors, of which the others follow, else its first lines; without their times."""
    lines = [_STAMP.sub("", line).strip() for line in text.splitlines()]
    excerpt = [line for line in lines if _TROUBLE.search(line)] or list(filter(None, lines))
    shown = "; ".join(dict.fromkeys(" ".join(line.split()) for line in excerpt))
    return f"; its log says: {shown[:_LOG_SHOWN]}" if shown else ""


def _exit_status(code: int) -> str:
    return f"the process ended with signal {-code}" if code < 0 else f"it ended with code {code}"


def _hint(ended: str) -> str:
    if "signal 4" in ended:
        return "This CPU lacks what the package was built for (AVX2): use a server instead."
    if "signal 9" in ended:
        return "The system ended it, mostly for want of memory: take a smaller model."
    if _NO_MEMORY.search(ended):
        return "Too little memory: take a smaller model, or lower context_tokens under [local]."
    return "Is the file whole? Compare its size and hash with those of where it came from."


def check_model_file(path: Path) -> None:
    """Raises ConfigError for what is no model file, or is larger than memory."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no model file {path}", hint=NO_FILE_HINT) from exc
    except OSError as exc:
        raise ConfigError(f"the model file {path} cannot be read: {exc.strerror}") from exc
    if magic != _MAGIC:
        raise ConfigError(
            f"{path} is not a GGUF file (it begins with {magic!r})", hint=NO_FILE_HINT
        )
    free = available_bytes()
    if free is not None and size + _EXTRA_BYTES > free:
        raise ConfigError(
            f"{path} needs about {(size + _EXTRA_BYTES) / _GB:.1f} GB of memory,"
            f" and {free / _GB:.1f} GB are available",
            hint="Take a smaller model or a smaller quantisation, or end something else.",
        )


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Memory that can be had without swapping, the container's limit included; None if unknown."""
    found: list[int] = []
    with suppress(OSError):
        lines = meminfo.read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # no limit, or not this kind of system
        limit = int((group / "memory.max").read_text())
        found.append(limit - int((group / "memory.current").read_text()))
    return min(found, default=None)


@contextmanager
def serving(state: Path, path: Path, start: Callable[[], Address]) -> Iterator[Address]:
    """What `start` gives, which others find while this lasts.

    Raises ConfigError if another one is served, before it starts anything: two would need twice
    the memory.
    """
    descriptor = open_private(state / _NOTE, os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise ConfigError(
                f"a model is being served for {state.parent} already", hint="end that one first"
            ) from exc
        os.ftruncate(descriptor, 0)  # of one that was killed
        address = start()
        note = {"path": str(path), "url": address.url, "key": address.key}
        os.write(descriptor, json.dumps(note).encode())
        try:
            yield address
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def warm_address(state: Path, path: Path) -> Address | None:
    """The server that is kept warm for this very file, if there is one."""
    file = state / _NOTE
    try:
        note = json.loads(file.read_bytes()) if is_held(file) else {}
    except (OSError, ValueError):
        return None
    return Address(note["url"], note["key"]) if note.get("path") == str(path) else None
