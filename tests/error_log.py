"""What the error logs of a home say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interventions.home import error_log_folder
from interventions.storage import jsonl


def error_lines(home: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(error_log_folder(home).glob("[0-9]*.jsonl")):
        yield from jsonl.read(path)
