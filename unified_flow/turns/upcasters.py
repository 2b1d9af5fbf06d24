"""What makes a record of an older journal one of today's: a step for each version.

A step changes what it must and leaves the rest. A renamed event, phase or field, and a field that
is now required, need a step, for no later version of the same major may refuse an older journal
(architecture/journal-versions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
"""A line of a journal, parsed."""


def upcast(record: Record, version: int, to: int) -> Record:
    """`record`, which a program of journal version `version` wrote, as version `to` writes it."""
    for step in range(version, to):
        record = UPCASTERS[step](record)
    return record


def _with_version(record: Record) -> Record:
    """Version 1 did not say in `turn_resumed` that it wrote it."""
    return {"version": 1, **record} if record.get("event") == "turn_resumed" else record


def _unchanged(record: Record) -> Record:
    return record


UPCASTERS: dict[int, Callable[[Record], Record]] = {
    1: _with_version,
    2: _unchanged,  # 3 has checksums
    3: _unchanged,  # 4 has numbers, forks and salvaged turns
}
