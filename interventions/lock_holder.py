"""Who holds a lock file, as far as the system tells (Linux)."""

from __future__ import annotations

import os
from pathlib import Path


def holders(path: Path) -> list[str]:
    """`process 4711 (python3)` for each; empty when it cannot be known."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except OSError:
        return []
    found = []
    for line in locks.splitlines():
        fields = line.split()
        # 1: FLOCK ADVISORY WRITE 4711 08:01:123456 0 EOF; a waiter has "->" in the second field.
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            found.append(_described(fields[4]))
    return [holder for holder in found if not holder.startswith(f"process {os.getpid()} ")]


def _described(pid: str) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        name = "unknown"
    return f"process {pid} ({name})"
