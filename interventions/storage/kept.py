"""What a person wrote and cannot be used as it is, in a file of its own, so that it is not lost."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from interventions.home import open_private


def keep(name: str, content: bytes) -> Path | None:
    """Where it lies, readable by its owner alone; None if there is no room for it."""
    try:
        path = Path(tempfile.mkdtemp(prefix="kept-")) / name
        descriptor = open_private(path, os.O_WRONLY)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError:
        return None
    return path


def where(path: Path | None) -> str:
    """The hint that goes with the reason for which it cannot be used."""
    return f"what you wrote is kept in {path}" if path is not None else ""
