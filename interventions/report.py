"""What failed over a window of time, what it blocks now, and how it was mended: in figures, and as
one page of HTML that needs neither a network nor a script: light, dark, and printed.

The page is made as a tree of elements, so that no text from outside becomes markup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypedDict
from xml.etree.ElementTree import Element, tostring

from interventions.entry import (
    SEVERITIES,
    Entry,
    closed_at,
    fingerprints,
    open_ones,
    turns_needed,
    turns_of,
)
from interventions.health import Cause, Health, Trends, Window
from interventions.plaintext import clean, one_line
from interventions.queue import InterventionQueue
from interventions.secrets.redaction import WHOLE, redact
from interventions.times import from_text, short_duration, to_text, utc_now
from interventions.view.description import known_fix
from interventions.view.groups import turns_of_others

FIXES_LOOKED_AT = 5  # of a cause, the latest archived first
SAMPLE = 200  # characters
_STYLE = Path(__file__).with_name("report.css")
# No script, no frame, nothing fetched, even if text from outside became markup.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class CauseReport(Cause):
    """`blocks` are the turns that wait for its fix, `fix` how it was resolved last."""

    blocks: int
    fix: str | None


class Report(TypedDict):
    """`project` is the name of the home's folder. `blocked` counts turns."""

    project: str
    made_at: str
    health: Health
    trends: Trends
    causes: list[CauseReport]
    blocked: int


def report(queue: InterventionQueue, window: Window, now: datetime | None = None) -> Report:
    """Redacted once more. Raises StorageError."""
    now = now or utc_now()
    found, entries = queue.trends(window, now), queue.entries()
    blocked, causes = _blocked_turns(entries), list[CauseReport]()
    for cause in found["causes"]:
        name = cause["fingerprint"]
        past = islice(queue.store.archived_resolved([name]), FIXES_LOOKED_AT)
        fix = _fix(name, [*past, *entries])
        causes.append({**cause, "blocks": len(blocked[name]), "fix": fix})
    whole: Report = {
        "project": queue.home.resolve().name,
        "made_at": to_text(now.replace(microsecond=0)),
        "health": queue.health(now=now),
        "trends": found,
        "causes": causes,
        "blocked": len(turns_needed(entries)),
    }
    redacted: Report = redact(whole, WHOLE)
    return redacted


def _blocked_turns(entries: Iterable[Entry]) -> dict[str, set[int]]:
    """The turns that open entries block, by the fingerprint that each failed with."""
    turns = defaultdict[str, set[int]](set)
    for entry in open_ones(entries):
        turns[entry["fingerprint"]] |= set(turns_of(entry)) - turns_of_others(entry)
        for row in entry["merged"]:
            turns[row.get("fingerprint", "")].update(row.get("turns") or ())
    return turns


def _fix(fingerprint: str, entries: Iterable[Entry]) -> str | None:
    past = [entry for entry in entries if fingerprint in fingerprints(entry, resolved=True)]
    return known_fix(max(past, key=closed_at)) if past else None


def as_html(found: Report) -> str:
    trends = found["trends"]
    until = f"until {from_text(found['made_at']):%d %B %Y, %H:%M} UTC"
    title = f"Interventions of {found['project']}"
    body = _node(
        "body",
        _node("header", _node("h1", title), _node("p", f"The last {trends['window']}, {until}")),
        _tiles(found),
        _section("Failures over time", *_over_time(trends), wide=True),
        _section("By phase", _bars(trends["by_phase"])),
        _section("Time to resolve", _bars(trends["outcomes"]["took"])),
        _section("Most frequent causes, and how they were mended", _causes(found), wide=True),
    )
    head = _node(
        "head",
        _node("meta", charset="utf-8"),
        _node("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        _node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _node("meta", name="color-scheme", content="light dark"),
        _node("title", title),
        _node("style", _STYLE.read_text(encoding="utf-8")),
    )
    page = tostring(_node("html", head, body, lang="en"), encoding="unicode", method="html")
    return f"<!doctype html>\n{page}"


def _node(tag: str, *inside: Element | str, **attributes: object) -> Element:
    """An element, with its text before its children. `class_` and `http_equiv` are the attributes
    `class` and `http-equiv`."""
    named = {name.rstrip("_").replace("_", "-"): str(it) for name, it in attributes.items()}
    node = Element(tag, named)
    node.text = "".join(clean(each) for each in inside if isinstance(each, str))
    node.extend(each for each in inside if isinstance(each, Element))
    return node


def _section(title: str, *inside: Element | str, wide: bool = False) -> Element:
    return _node("section", _node("h2", title), *inside, class_="wide" if wide else "half")


def _tiles(found: Report) -> Element:
    ended, health = found["trends"]["outcomes"], found["health"]
    limit = health["limits"]["max_size"]
    resolved = ended["verified"] + ended["unverified"]
    half, tenth = ended["median_hours"], ended["slowest_tenth_hours"]
    share = f"{ended['verified'] / resolved:.0%}" if resolved else "none"
    tiles = [
        ("Failures", str(found["trends"]["failures"]), f"in the last {found['trends']['window']}"),
        ("Open now", str(health["unresolved"]), f"of {limit}: {health['queue_health']}"),
        ("Turns blocked", str(found["blocked"]), "wait for a fix"),
        ("Verified", share, f"{ended['verified']} of {resolved} resolved"),
        ("Half resolved within", _hours(half), f"nine of ten: {_hours(tenth)}"),
        ("Came back", str(ended["regressions"]), "after they were resolved"),
    ]
    nodes = (
        _node("div", _node("dt", name), _node("dd", value), _node("dd", more, class_="more"))
        for name, value, more in tiles
    )
    return _node("dl", *nodes, class_="tiles")


def _hours(hours: float | None) -> str:
    return "none" if hours is None else short_duration(timedelta(hours=hours))


_WIDE, _HIGH, _LEFT, _FOOT = 960, 240, 44, 24  # of the chart, and what its axes take


def _over_time(found: Trends) -> Iterator[Element]:
    """A bar for each step of time, with the worst severity at its foot."""
    counts = {name: sum(found["by_severity"][name]) for name in SEVERITIES}
    legend = [
        _node("span", f"{count} {name}", class_=f"key {name}") for name, count in counts.items()
    ]
    yield _node("p", *legend, class_="legend")
    bars = list(zip(*(found["by_severity"][name] for name in SEVERITIES), strict=True))
    most = max(map(sum, bars), default=0)
    most += most % 2 or 2 * (most == 0)  # an even number, so that its half is a whole one
    scale, step_wide = (_HIGH - _FOOT - 8) / most, (_WIDE - _LEFT) / len(bars)
    label = f"{found['failures']} failures over the last {found['window']}"
    chart = _node("svg", viewBox=f"0 0 {_WIDE} {_HIGH}", role="img", aria_label=label)
    for value in (0, most // 2, most):
        y = f"{_HIGH - _FOOT - value * scale:.1f}"
        chart.append(_node("line", x1=_LEFT, x2=_WIDE, y1=y, y2=y, class_="grid"))
        chart.append(_node("text", str(value), x=_LEFT - 8, y=y, dy=4, text_anchor="end"))
    since, step = from_text(found["since"]), timedelta(minutes=found["step_minutes"])
    form = "%H:%M" if step <= timedelta(hours=1) else "%d %b"
    # A label every 10 minutes, 3 hours, day, 5 days.
    labelled = step.total_seconds() * {24: 3, 28: 4}.get(len(bars), 5)
    for number, bar in enumerate(bars):
        begins, foot = since + number * step, _HIGH - _FOOT
        x, end = (_LEFT + at * step_wide for at in (number, number + 1))
        if number and begins.timestamp() % labelled == 0:  # the first label would be cut
            place = {"x": f"{end:.1f}", "y": str(_HIGH - 6), "text_anchor": "end"}
            chart.append(_node("text", f"{begins:{form}}", **place))
        for name, count in zip(SEVERITIES, bar, strict=True):
            if count:
                said = _node("title", f"{begins:%d %b, %H:%M} UTC: {count} {name}")
                place = {"x": f"{x + 1:.1f}", "y": f"{foot - count * scale:.1f}"}
                size = {"width": f"{step_wide - 2:.1f}", "height": f"{count * scale:.1f}"}
                chart.append(_node("rect", said, **place, **size, class_=name))
                foot -= count * scale
    yield chart


def _bars(counts: Mapping[str, int]) -> Element:
    most = max(counts.values(), default=0)
    rows = []
    for name, count in counts.items():
        rect = _node("rect", width=f"{100 * count / (most or 1):.1f}", height=8)
        size = {"viewBox": "0 0 100 8", "preserveAspectRatio": "none"}
        bar = _node("svg", rect, **size, aria_hidden="true")
        cells = _node("td", str(count), class_="number"), _node("td", bar, class_="bar")
        rows.append(_node("tr", _node("th", one_line(name), scope="row"), *cells))
    return _node("table", *rows, class_="bars") if most else _node("p", "Nothing.", class_="more")


def _causes(found: Report) -> Element:
    if not found["causes"]:
        return _node("p", f"Nothing failed in the last {found['trends']['window']}.")
    # The width of each column, as the style sheet names it.
    columns = {"Times": "short", "Severity": "middle", "Phase": "long", "Failure": ""}
    columns |= {"Turns blocked": "short", "Last fix": "fix"}
    titles = (_node("th", name, scope="col", class_=wide) for name, wide in columns.items())
    rows = []
    for cause in found["causes"]:
        cells = (
            str(cause["count"]),
            _node("span", cause["severity"], class_=f"key {cause['severity']}"),
            one_line(cause["phase"]),
            cause["sample"][:SAMPLE],
            str(cause["blocks"] or ""),
            cause["fix"] or "never resolved",
        )
        rows.append(_node("tr", *(_node("td", cell) for cell in cells)))
    head = _node("thead", _node("tr", *titles))
    return _node("table", head, _node("tbody", *rows), class_="rows")
