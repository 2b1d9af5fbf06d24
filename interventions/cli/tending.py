"""`health`, `drain`, `doctor` and `watch`: the queue itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from interventions.cli.exits import Code, exits
from interventions.cli.options import AsJson, AsJsonl, By, Home, QueryWords, the_queue
from interventions.cli.rows import table
from interventions.cli.screen import coloured, note, paint, say, say_json, say_painted, width
from interventions.cli.view import entry_view
from interventions.entry import Entry
from interventions.home import find_home, queue_file
from interventions.timestamps import utc_now
from interventions.upkeep.health import Health
from interventions.view.grouping import single
from interventions.view.plaintext import clean
from interventions.view.query import parse

_POLL_S = 0.25
_COLOUR = {"healthy": "bold", "warning": "high", "critical": "critical"}


def health(
    home: Home = None,
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """How many wait, how old, how fast they are resolved, what was dropped and why."""
    with exits():
        queue = the_queue(home)
        while True:
            figures = queue.health()
            if as_json:
                say_json(figures, lines=watch)
            else:
                if watch and coloured():
                    say_painted("\x1b[H\x1b[2J")
                first, *more = health_lines(figures)
                grade, rest = first.split(":", 1)
                say_painted(f"{paint(grade, _COLOUR[grade])}:{clean(rest)}")
                for line in more:
                    say(line)
            sys.stdout.flush()
            if not watch:
                return
            time.sleep(2)


def health_lines(figures: Health) -> list[str]:
    limits = figures["limits"]
    severities = ", ".join(f"{count} {name}" for name, count in figures["by_priority"].items())
    lines = [
        f"{figures['queue_health']}: "
        f"{figures['unresolved']}/{limits['max_size']} open ({severities})",
        f"{figures['snoozed']} snoozed, {figures['total']} in the file",
        f"oldest open: {figures['oldest_unresolved_age_hours']:g} h",
    ]
    if figures["median_hours_to_resolve"] is not None:
        lines.append(f"median time to resolve: {figures['median_hours_to_resolve']:g} h")
    lines.append(
        f"accepted {figures['accepted']}, merged {figures['merged']}, "
        f"counted {figures['counted']}, regressions {figures['regressions']}"
    )
    dropped = ", ".join(f"{count} {reason}" for reason, count in figures["dropped"].items())
    lines.append(f"dropped: {dropped or 'none'}")
    for title, counts, limit in (
        ("session", figures["sessions"], limits["max_per_session"]),
        ("error", figures["error_types"], limits["max_per_error_type"]),
    ):
        lines += [f"{title} {name}: {count}/{limit}" for name, count in counts.items() if count > 1]
    return lines


def drain(home: Home = None, by: By = None, as_json: AsJson = False) -> None:
    """Put emergency entries back while there is room, the oldest critical first."""
    from interventions.upkeep.drain import drain as drain_queue

    with exits():
        result = drain_queue(the_queue(home), by=by, via="cli")
        if as_json:
            say_json({"put": result.put, "left": result.left, "unusable": result.unusable})
        else:
            say(f"put back {len(result.put)}, left {result.left}")
            if result.left:
                note("the queue is full: resolve some, then drain again")
            if result.unusable:
                note(f"{result.unusable} lines of the emergency log are no failures")


def doctor(
    home: Home = None,
    check: Annotated[bool, typer.Option("--check", help="Only look; mend nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find what is wrong with the queue's files, and mend it; rebuild a queue that was damaged."""
    from interventions.upkeep.doctor import examine

    with exits():
        place = find_home(home)
        findings = examine(the_queue(home), mend=not check)
        wrong = [finding for finding in findings if not finding.fine]
        if as_json:
            say_json({"home": str(place), "findings": [finding.as_dict() for finding in findings]})
        else:
            for finding in findings:
                mark = "ok  " if finding.fine else "did " if finding.mended else "bad "
                painted = paint(mark, "bold" if finding.fine else "high")
                say_painted(painted + clean(finding.what))
                if finding.todo:
                    say(f"      {finding.todo}")
        if any(not finding.mended for finding in wrong):
            raise typer.Exit(Code.QUEUE)


def watch(
    query: QueryWords = None,
    home: Home = None,
    as_jsonl: AsJsonl = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Begin with those that are open already.")
    ] = False,
    count: Annotated[
        int, typer.Option("--count", "-c", min=0, help="End after so many; 0: never.")
    ] = 0,
) -> None:
    """Print new interventions as they come, until interrupted."""
    with exits():
        wanted = parse(" ".join(query or []))
        path = queue_file(find_home(home))
        known = set() if everything else {entry["id"] for entry in _entries(path)}
        printed = 0
        note(f"watching {path}")
        for _ in _changes(path):
            now = utc_now()
            for entry in wanted.select(_entries(path), now):
                if entry["id"] in known:
                    continue
                known.add(entry["id"])
                if as_jsonl:
                    say_json(entry_view(entry, now), lines=True)
                else:
                    for line in table(single([entry]), width(), now)[1:]:
                        say_painted(line)
                sys.stdout.flush()
                printed += 1
                if count and printed >= count:
                    return


def _changes(path: Path) -> Iterator[None]:
    """Once at the start, and again whenever the file was replaced."""
    last: object = ...
    while True:
        try:
            found = path.stat()
            mark: object = (found.st_ino, found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            mark = None
        if mark != last:
            last = mark
            yield
        else:
            time.sleep(_POLL_S)


def _entries(path: Path) -> list[Entry]:
    from interventions.storage.file_read import read_state

    return list(read_state(path).entries)
