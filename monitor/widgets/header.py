"""What is above the lists: how the queue is, the tabs, and the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from textual.content import Content
from textual.widgets import Static

from interventions.health import Health
from interventions.plaintext import one_line
from interventions.times import short_duration
from monitor.core.rows import short_number
from monitor.core.source import Pulse, Snapshot, TroubleKind
from monitor.widgets.trends_view import EIGHTHS, SEVERITY_STYLES

_MOST_LIMITS = 4
_WARNING = "bold $text-warning"
_CRITICAL_WAITS = ("● critical waits", "bold $text-error")
_GRADE = {"healthy": "$text-success", "warning": _WARNING, "critical": "bold $text-error"}


class StatusHeader(Static):
    def show(
        self, snapshot: Snapshot, pulse: Pulse, title: str, pending: int | None, since: str
    ) -> None:
        """`pending`: how many came since the list was paused, None while it is not. `since`: what
        happened since the last look, a line of its own."""
        lines = [_status(snapshot, pulse, title, pending), _limits(snapshot.health, pulse)]
        lines += [Content.assemble((since, "bold"), ("  esc hides it", "dim"))] if since else []
        self.set_class(bool(since), "-since")
        self.update(Content("\n").join(lines), layout=False)  # as high as its class says


def _status(snapshot: Snapshot, pulse: Pulse, title: str, pending: int | None) -> Content:
    trouble, figures = snapshot.trouble, snapshot.health
    parts = [("" if pending is None else f" PAUSED +{pending} new ", "reverse bold")]
    if trouble is not None:
        quiet = trouble.kind is TroubleKind.FIRST_RUN
        parts.append((f"● {trouble.kind}", "dim" if quiet else "bold reverse $text-error"))
    parts.append(("read-only" if snapshot.read_only else "", _WARNING))
    parts.append(("locked" if snapshot.locked else "", _WARNING))
    if figures is not None:
        grade, dropped = figures["queue_health"], sum(figures["dropped"].values())
        if trouble is None:  # the grade is of the number alone: with a critical one nothing is well
            well = grade != "healthy" or not figures["by_priority"]["critical"]
            parts.append((f"● {grade}", _GRADE[grade]) if well else _CRITICAL_WAITS)
        elif trouble.kind is not TroubleKind.DAMAGED:
            parts.append(("as last read", "dim"))
        parts += [
            (f"{figures['unresolved']}/{figures['limits']['max_size']} open", "bold"),
            (f"dropped {short_number(dropped)}" if dropped else "", "bold $text-error"),
            *((f"{n} {name}", SEVERITY_STYLES[name]) for name, n in _some(figures["by_priority"])),
            (f"{pulse.interrupted} interrupted" if pulse.interrupted else "", "$text-warning"),
            (f"{figures['snoozed']} snoozed" if figures["snoozed"] else "", "dim"),
        ]
        limits = {"merged": figures["merged"], "counted": figures["counted"]}
        parts += [(f"{word} {short_number(count)}", "dim") for word, count in _some(limits)]
    return _joined([*parts, (one_line(title), "dim")])


def _some(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, count) for name, count in counts.items() if count]


def _joined(parts: Iterable[tuple[str, str]]) -> Content:
    return Content(" · ").join(Content.styled(*part) for part in parts if part[0])


def _sparkline(failures: Sequence[int]) -> str:
    """`▁▁▃▁█▁ 31 in 1 h`: the failures of the last hour, two steps in a column."""
    if not any(failures):
        return ""
    columns = [sum(failures[at : at + 2]) for at in range(0, len(failures), 2)]
    bars = "".join(EIGHTHS[1 - (-count * 7 // max(columns))] for count in columns)
    return f"{bars} {sum(failures)} in 1 h"


def _limits(figures: Health | None, pulse: Pulse) -> Content:
    """`session abc 5/5 merging · HTTPStatusError 10/10 counting`, the fullest first."""
    if figures is None:
        return Content("")
    limits, rows = figures["limits"], []
    for counts, limit, word, then in (
        (figures["sessions"], limits["max_per_session"], "session ", " merging"),
        (figures["error_types"], limits["max_per_error_type"], "", " counting"),
    ):
        for name, count in counts.items():
            if count > 1:
                text = f"{word}{one_line(name)} {count}/{limit}"
                full = (text + then, _WARNING) if count >= limit else (text, "dim")
                rows.append((count / limit, full))
    rows.sort(key=lambda row: -row[0])
    oldest, median = figures["oldest_unresolved_age_hours"], figures["median_hours_to_resolve"]
    took = "" if median is None else short_duration(timedelta(hours=median))
    return _joined(
        [
            (_sparkline(pulse.failures), "$text-primary"),
            *(part for _, part in rows[:_MOST_LIMITS]),
            (f"oldest {oldest:.0f} h" if oldest >= 1 else "", "dim"),
            (f"resolved in {took} (median)" if took else "", "dim"),
        ]
    )


class TabBar(Static):
    """The tabs in one line, each with its number and how much is in it; a click goes there."""

    auto_links = False  # they look as they are styled here

    def __init__(self, titles: Mapping[str, str], *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._titles = dict(titles)

    def show(self, current: str, counts: Mapping[str, str]) -> None:
        parts = []
        for number, (tab, title) in enumerate(self._titles.items(), 1):
            count = f" {counts[tab]}" if counts.get(tab) else ""
            style = "reverse bold " if tab == current else ""
            go_there = f"@click=screen.tab_to('{tab}')"
            parts.append(Content.styled(f" {number} {title}{count} ", style + go_there))
        self.update(Content("").join(parts), layout=False)  # always one line


class FilterLine(Static):
    """The query that the lists are under, and what is wrong with it."""

    def show(self, query: str, problem: str, way_out: str) -> None:
        self.display = bool(query)
        style = "$text-error" if problem else ""
        wrong = (problem, "$text-error") if problem else (way_out, "dim")
        self.update(Content.assemble(("/ ", "bold $text-accent"), (query, style), "  ", wrong))
