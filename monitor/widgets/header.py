"""What is above the lists: how the queue is, the tabs, and the filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from interventions.health import Health
from interventions.plaintext import one_line
from interventions.times import short_duration
from monitor.core.rows import short_number
from monitor.core.snapshot import Pulse, Snapshot, TroubleKind
from monitor.widgets.keys import key
from monitor.widgets.trends_view import SEVERITY_STYLES

_MOST_LIMITS = 4
_BARS = "▁▂▃▄▅▆▇█"
_GRADE = {
    "healthy": "$text-success",
    "warning": "bold $text-warning",
    "critical": "bold $text-error",
}


class StatusHeader(Static):
    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

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
    parts: list[Content] = []
    if pending is not None:
        parts.append(Content.styled(f" PAUSED +{pending} new ", "reverse bold"))
    if snapshot.trouble is not None:
        quiet = snapshot.trouble.kind is TroubleKind.FIRST_RUN
        style = "dim" if quiet else "bold reverse $text-error"
        parts.append(Content.styled(f"● {snapshot.trouble.kind}", style))
    if snapshot.read_only:
        parts.append(Content.styled("read-only", "bold $text-warning"))
    if snapshot.locked:
        parts.append(Content.styled("locked", "bold $text-warning"))
    figures = snapshot.health
    if figures is not None:
        grade, size = figures["queue_health"], figures["limits"]["max_size"]
        if snapshot.trouble is None:
            parts.append(Content.styled(f"● {grade}", _GRADE[grade]))
        elif snapshot.trouble.kind is not TroubleKind.DAMAGED:
            parts.append(Content.styled("as last read", "dim"))
        parts.append(Content.styled(f"{figures['unresolved']}/{size} open", "bold"))
        if dropped := sum(figures["dropped"].values()):
            parts.append(Content.styled(f"dropped {short_number(dropped)}", "bold $text-error"))
        parts += [
            Content.styled(f"{count} {name}", SEVERITY_STYLES[name])
            for name, count in figures["by_priority"].items()
            if count
        ]
        if pulse.interrupted:
            parts.append(Content.styled(f"{pulse.interrupted} interrupted", "$text-warning"))
        if figures["snoozed"]:
            parts.append(Content.styled(f"{figures['snoozed']} snoozed", "dim"))
        for word, count in (("merged", figures["merged"]), ("counted", figures["counted"])):
            if count:
                parts.append(Content.styled(f"{word} {short_number(count)}", "dim"))
    parts.append(Content.styled(one_line(title), "dim"))
    return Content(" · ").join(parts)


def _sparkline(failures: Sequence[int]) -> list[Content]:
    """`▁▁▃▁█▁ 31 in 1 h`: the failures of the last hour, two steps in a column."""
    if not any(failures):
        return []
    columns = [sum(failures[at : at + 2]) for at in range(0, len(failures), 2)]
    bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // max(columns))] for count in columns)
    return [Content.assemble((bars, "$text-primary"), (f" {sum(failures)} in 1 h", "dim"))]


def _limits(figures: Health | None, pulse: Pulse) -> Content:
    """`session abc 5/5 merging · HTTPStatusError 10/10 counting`, the fullest first."""
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
    parts = _sparkline(pulse.failures)
    parts += [Content.styled(text, style) for _, text, style in rows[:_MOST_LIMITS]]
    oldest = figures["oldest_unresolved_age_hours"]
    if oldest >= 1:
        parts.append(Content.styled(f"oldest {oldest:.0f} h", "dim"))
    median = figures["median_hours_to_resolve"]
    if median is not None:
        took = short_duration(timedelta(hours=median))
        parts.append(Content.styled(f"resolved in {took} (median)", "dim"))
    return Content(" · ").join(parts)


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


class _QueryInput(Input):
    # Its own keys, because an input has others for them already.
    BINDINGS: ClassVar[list[BindingType]] = [
        key("enter,down", "submit", "To the list", "Keep the filter", id="filter.done")
    ]


class FilterBar(Horizontal):
    """The line in which a query is typed; it filters while one types."""

    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "screen.clear_filter", "Clear", "No filter", id="filter.clear")
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static("/", id="filter-slash", markup=False)
        yield _QueryInput(
            placeholder="sev:critical phase:planner type:captcha is:snoozed age:>1h text",
            id="filter-text",
            compact=True,
        )
        yield Static(id="filter-problem", markup=False)

    def open(self) -> None:
        self.display = True
        self.screen.set_focus(self.query_one(Input))  # at once: the next key is a letter of it

    def show_query(self, query: str) -> None:
        """One that nobody typed."""
        with self.prevent(Input.Changed):
            self.query_one(Input).value = query
        self.display = bool(query)
        self.show_problem("")

    def show_problem(self, problem: str) -> None:
        self.query_one("#filter-problem", Static).update(problem)
        self.set_class(bool(problem), "-bad")
