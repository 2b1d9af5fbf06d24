"""What helped when the same failure was resolved before, in words."""

from __future__ import annotations

from collections.abc import Iterable

from interventions.entry import Entry, Resolution
from interventions.view.plaintext import one_line

SHOWN = 2


def fix(resolution: Resolution) -> str:
    """`restarted the server (verified, ada, 2026-11-21)`: the note, whether a resumed turn proved
    it, whose it is and of which day."""
    proof = "verified" if resolution.get("verified") else "not verified"
    who, when = resolution.get("by", "somebody"), str(resolution.get("at", ""))[:10]
    return one_line(f"{resolution.get('note', '')} ({', '.join(filter(None, (proof, who, when)))})")


def known_fixes(past: Iterable[Entry]) -> list[str]:
    """Of earlier resolutions of the same failure (`queue.similar`): the latest, each once."""
    rows = [
        row
        for entry in past
        for row in reversed(entry["resolutions"])
        if row.get("kind") == "resolved"
    ]
    return list(dict.fromkeys(map(fix, rows)))[:SHOWN]
