"""Is this a file that llama.cpp can load here? Asked before a process is started for it."""

from __future__ import annotations

import os
from pathlib import Path

from unified_flow.errors import ConfigError

MAGIC = b"GGUF"
NO_FILE_HINT = (
    "Name a .gguf file: --model local:/path/model.gguf, or path under [local] or [vectors]"
)
_GB = 1_000_000_000
# Beside the weights: the cache of the context, the buffers, the process itself (measured 1.5 GB
# for 1.1 GB of weights at 8,192 tokens).
_EXTRA_BYTES = 400_000_000


def checked(path: Path) -> Path:
    """`path` itself. Raises ConfigError for what is no model file, or is larger than memory."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no model file {path}", hint=NO_FILE_HINT) from exc
    except OSError as exc:
        raise ConfigError(f"the model file {path} cannot be read: {exc.strerror}") from exc
    if magic != MAGIC:
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
    return path


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Memory that can be had without swapping, the container's limit included; None if unknown."""
    found = [size for size in (_available(meminfo), _limit()) if size is not None]
    return min(found, default=None)


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return sizes[0] if sizes else None


def _limit(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    try:
        limit = int((group / "memory.max").read_text())
        return limit - int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None  # no limit, or not this kind of system


def threads() -> int:
    """The cores that this process may use: more only slow each other down."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)
