"""What an index holds, for `unified-flow index --stats`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from interventions.cli.terminal import say

if TYPE_CHECKING:
    from unified_flow.retrieval.collection import Statistics

REASONS = 10


def show(found: Statistics, as_json: bool) -> None:
    if as_json:
        own = asdict(found) | {
            "oldest": _stamp(found.oldest),
            "newest": _stamp(found.newest),
            "largest": [
                {"path": path, "characters": size, "chunks": chunks}
                for path, size, chunks in found.largest
            ],
        }
        say(json.dumps(own, ensure_ascii=False))
        return
    say(f"collection {found.collection}: {found.files} files, {found.chunks} chunks")
    say(f"  terms      {found.terms:,}, {found.distinct_terms:,} different")
    say(f"  on disk    {found.size_bytes / 1024 / 1024:.1f} MB")
    if found.newest is not None and found.oldest is not None:
        say(f"  last read  {_age(found.newest)} ago, the oldest {_age(found.oldest)} ago")
    say(f"  languages  {_counted(found.languages)}")
    say(f"  formats    {_counted(found.formats)}")
    for number, (path, size, chunks) in enumerate(found.largest):
        head = "  largest    " if number == 0 else " " * 13
        say(f"{head}{path} ({size:,} characters, {chunks} chunks)")
    for number, (reason, count) in enumerate(list(found.skipped.items())[:REASONS]):
        head = "  skipped    " if number == 0 else " " * 13
        say(f"{head}{count}: {reason}")
    for number, root in enumerate(found.roots):
        say(f"{'  from       ' if number == 0 else ' ' * 13}{root}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _stamp(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _age(at: datetime) -> str:
    seconds = max(0, int((datetime.now(UTC) - at).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
