"""What a person has seen of the queue, kept from one visit of the monitor to the next."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from interventions.entry import Entry
from interventions.home import replace_private, state_folder
from interventions.plaintext import one_line
from interventions.times import from_text, short_duration
from interventions.view.groups import last_news

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Look:
    """`at`: what was in the queue then was shown; ISO text, empty on a first visit. `new` are the
    ids of entries that were shown as new, and not looked at."""

    at: str = ""
    new: frozenset[str] = frozenset()

    def is_news(self, entry: Entry) -> bool:
        return entry["id"] in self.new or last_news(entry) > self.at


def look_file(home: Path, person: str) -> Path:
    return state_folder(home) / "looked" / f"{_UNSAFE.sub('_', person)}.json"


def read_look(path: Path) -> Look:
    """That of a first visit where there is none, or a hand has spoilt it."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        from_text(kept["at"])
        return Look(kept["at"], frozenset(map(str, kept["new"])))
    except (OSError, ValueError, TypeError, KeyError):
        return Look()


def write_look(path: Path, look: Look) -> None:
    """A folder that is gone is not made again, and a full disk costs no more than the memory."""
    if path.parents[1].is_dir():
        with suppress(OSError):
            replace_private(path, json.dumps({"at": look.at, "new": sorted(look.new)}))


def since_last_look(
    look: Look, entries: Sequence[Entry], closed_by: Iterable[str], now: datetime
) -> str:
    """`since you looked 3h ago: 4 new (1 critical), 1 came back, 3 closed by ada (2), bob`; empty
    on a first visit, or if nothing happened."""
    if not look.at:
        return ""
    came = [entry for entry in entries if last_news(entry) > look.at]
    critical = sum(entry["severity"] == "critical" for entry in came)
    back = sum(bool(e.get("regression_of")) and e["created_at"] > look.at for e in came)
    people = Counter(closed_by).most_common()
    names = ", ".join(f"{one_line(name)} ({n})" if n > 1 else one_line(name) for name, n in people)
    parts = [
        f"{len(came)} new" + (f" ({critical} critical)" if critical else "") if came else "",
        f"{back} came back" if back else "",
        f"{sum(n for _, n in people)} closed by {names}" if people else "",
    ]
    news = ", ".join(filter(None, parts))
    ago = short_duration(now - from_text(look.at))
    return f"since you looked {ago} ago: {news}" if news else ""
