"""Two lines: how the queue is, and which limits are in reach."""

from __future__ import annotations

from datetime import timedelta

from textual.content import Content
from textual.widgets import Static

from interventions.durations import short_duration
from interventions.upkeep.health import Health
from interventions.view.plaintext import one_line
from monitor.core.listing import short_number
from monitor.core.snapshot import Snapshot

_GRADE = {
    "healthy": "$text-success",
    "warning": "bold $text-warning",
    "critical": "bold $text-error",
}
_SEVERITY = {"critical": "bold $text-error", "high": "$text-warning", "medium": "$text-primary"}


class StatusHeader(Static):
    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def show(self, snapshot: Snapshot, title: str, paused: int | None) -> None:
        """`paused` is how many came since the list is held still."""
        first, second = status(snapshot, title, paused), limits(snapshot.health)
        self.update(Content("\n").join([first, second]), layout=False)  # always two lines


def status(snapshot: Snapshot, title: str, paused: int | None) -> Content:
    parts: list[Content] = []
    if paused is not None:
        parts.append(Content.styled(f" PAUSED +{paused} new ", "reverse bold"))
    if snapshot.trouble is not None:
        parts.append(Content.styled(f"● {snapshot.trouble.kind}", "bold $text-error"))
    if snapshot.read_only:
        parts.append(Content.styled("read-only", "bold $text-warning"))
    if snapshot.locked:
        parts.append(Content.styled("locked", "bold $text-warning"))
    figures = snapshot.health
    if figures is not None:
        grade = figures["queue_health"]
        size = figures["limits"]["max_size"]
        if snapshot.trouble is None:
            parts.append(Content.styled(f"● {grade}", _GRADE[grade]))
        else:
            parts.append(Content.styled("as last read", "dim"))
        parts.append(Content.styled(f"{figures['unresolved']}/{size} open", "bold"))
        dropped = sum(figures["dropped"].values())
        if dropped:
            parts.append(Content.styled(f"dropped {short_number(dropped)}", "bold $text-error"))
        parts += [
            Content.styled(f"{count} {name}", _SEVERITY[name])
            for name, count in figures["by_priority"].items()
            if count
        ]
        if figures["snoozed"]:
            parts.append(Content.styled(f"{figures['snoozed']} snoozed", "dim"))
        if figures["merged"]:
            parts.append(Content.styled(f"merged {short_number(figures['merged'])}", "dim"))
        if figures["counted"]:
            parts.append(Content.styled(f"counted {short_number(figures['counted'])}", "dim"))
    parts.append(Content.styled(one_line(title), "dim"))
    return Content(" · ").join(parts)


def limits(figures: Health | None) -> Content:
    """`session abc 5/5 merges · HTTPStatusError 10/10 counts`, the fullest first."""
    if figures is None:
        return Content("")
    rows = []
    for counts, limit, word, then in (
        (figures["sessions"], figures["limits"]["max_per_session"], "session ", "merging"),
        (figures["error_types"], figures["limits"]["max_per_error_type"], "", "counting"),
    ):
        for name, count in counts.items():
            if count > 1:
                full = count >= limit
                text = f"{word}{one_line(name)} {count}/{limit}" + (f" {then}" if full else "")
                rows.append((count / limit, text, "bold $text-warning" if full else "dim"))
    rows.sort(key=lambda row: -row[0])
    oldest = figures["oldest_unresolved_age_hours"]
    parts = [Content.styled(text, style) for _, text, style in rows[:4]]
    if oldest >= 1:
        parts.append(Content.styled(f"oldest {oldest:.0f} h", "dim"))
    median = figures["median_hours_to_resolve"]
    if median is not None:
        took = short_duration(timedelta(hours=median))
        parts.append(Content.styled(f"resolved in {took} (median)", "dim"))
    return Content(" · ").join(parts)
