"""Failures over a window of time as bars, and in figures.

Drawn here: plotext, whose widget for Textual was tried, gives bars of one chart different widths
and lets some of them float above the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import accumulate
from math import ceil

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from interventions.entry import SEVERITIES
from interventions.health import Cause, Trends
from interventions.plaintext import fit, one_line
from interventions.times import from_text, short_duration
from monitor.core.rows import short_number
from monitor.widgets.text_view import Part

SEVERITY_STYLES = {
    "critical": "bold $text-error",
    "high": "$text-warning",
    "medium": "$text-primary",
}
EIGHTHS = " ▁▂▃▄▅▆▇█"
_SCALE = 6  # cells left of the bars
_NAME, _BAR = 18, 24


class TrendChart(Widget):
    """As wide and as high as there is room."""

    trends: reactive[Trends | None] = reactive(None)

    def render(self) -> Content:
        size = self.size
        return chart(self.trends, size.width, size.height) if self.trends else Content("")


def chart(found: Trends, width: int, height: int) -> Content:
    """Title and legend, a bar for each step with the worst at its foot, and an axis of times;
    `height` lines in all."""
    steps = len(found["by_severity"]["critical"])
    cells = max((width - _SCALE) // steps, 1)
    bars = list(zip(*(found["by_severity"][name] for name in SEVERITIES), strict=True))
    # An even number, so that the middle of the scale is a whole one.
    most = max(map(sum, bars), default=0)
    most += most % 2
    rows = max(height - 4, 2)
    counts = {name: sum(found["by_severity"][name]) for name in SEVERITIES}
    legend = [
        Content.styled(f"■ {count} {name}", SEVERITY_STYLES[name]) for name, count in counts.items()
    ]
    in_all = Content(f"{found['failures']} in all:")
    lines = [_title(found), Content("  ").join([in_all, *legend])]
    for row in range(rows - 1, -1, -1):
        scale = {rows - 1: most, (rows - 1) // 2: most // 2}.get(row, 0)
        parts = [Content.styled(f"{short_number(scale) if scale else '':>{_SCALE - 2}} │", "dim")]
        for bar in bars:
            filled = _cell(bar, row, rows / (most or 1))
            gap = Content(" " * (cells > 1))
            parts += [Content.styled(filled[0] * max(cells - 1, 1), filled[1]), gap]
        lines.append(Content("").join(parts))
    lines.append(Content.styled(f"{0:>{_SCALE - 2}} └" + "─" * cells * steps, "dim"))
    lines.append(Content.styled(_times(found, cells), "dim"))
    return Content("\n").join(lines)


def _cell(bar: Sequence[int], row: int, scale: float) -> tuple[str, str]:
    """How full it is, and the style of the severity that reaches it. Only the end of the whole bar
    is drawn in eighths, so that its height is right without colours too; what is there at all is
    seen."""
    ends = (total * scale for total in accumulate(bar))
    name = next((name for name, end in zip(SEVERITIES, ends, strict=True) if end > row), "")
    eighths = max(round((sum(bar) * scale - row) * 8), 1) if name else 0
    return EIGHTHS[min(eighths, 8)], SEVERITY_STYLES.get(name, "")


def _title(found: Trends) -> Content:
    step = short_duration(timedelta(minutes=found["step_minutes"]))
    title = f"Failures of the last {found['window']}"
    return Content.assemble((title, "bold"), (f", {step} a bar (W: longer, shorter)", "dim"))


def _times(found: Trends, cells: int) -> str:
    """UTC, as everywhere in the files; days where a step is long."""
    since, step = from_text(found["since"]), timedelta(minutes=found["step_minutes"])
    words, every = "", ceil(len("00:00  ") / cells)
    form = "%H:%M" if step <= timedelta(hours=1) else "%d %b"
    if step == timedelta(hours=6):
        every = 4 * -(-every // 4)  # whole days
    for number in range(0, len(found["by_severity"]["critical"]), every):
        words = words.ljust(_SCALE + number * cells) + f"{since + number * step:{form}}"
    return f"{words} UTC"


def cause_part(cause: Cause) -> Part:
    times = f"{cause['count']} times" if cause["count"] > 1 else "once"
    what = f"{times}, {cause['severity']}, in {one_line(cause['phase'])}"
    return Part("", [Content.styled(cause["sample"], "bold"), Content(what)])


def figures(found: Trends) -> list[Part]:
    """By phase, by what the queue made of them, and how entries were closed in that time."""
    ended = found["outcomes"]
    closed = {name: ended[name] for name in ("verified", "unverified", "dismissed")}
    parts = [
        Part("Failures by phase", _bars(found["by_phase"])),
        Part("What the queue made of them", _bars(found["admissions"])),
        Part("Entries closed", [*_bars(closed), *_bars({"came back": ended["regressions"]})]),
    ]
    half, most = ended["median_hours"], ended["slowest_tenth_hours"]
    if half is not None and most is not None:
        times = [short_duration(timedelta(hours=hours)) for hours in (half, most)]
        words = Content(f"half within {times[0]}, nine of ten within {times[1]}")
        parts.append(Part("Time to resolve", [words, *_bars(ended["took"])]))
    return parts


def _bars(counts: Mapping[str, int]) -> list[Content]:
    most = max(counts.values(), default=0)
    lines = []
    for name, count in counts.items():
        label = f"{fit(one_line(name), _NAME)} "
        bar = "█" * ceil(count / (most or 1) * _BAR)
        number = Content(f" {count}" if count else "·")
        lines.append(Content.assemble(label, (bar, "$text-primary"), number))
    return lines
