"""`health`, `report`, `drain`, `doctor` and `schema`: the queue itself."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Annotated

import typer
from typer import Option

from interventions.cli import terminal
from interventions.cli.options import AsJson, By, Home, Output, read_entries, the_queue
from interventions.health import Health, Window
from interventions.plaintext import clean
from interventions.times import short_duration

_COLOUR = {"healthy": "bold", "warning": "high", "critical": "critical"}


def health(
    home: Home = None,
    watch: Annotated[bool, Option("--watch", help="Again every two seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """How many wait and how long, what was dropped and why."""
    read_entries(home)  # says which it cannot read: those are in no figure
    queue = the_queue(home)
    while True:
        figures = queue.health()
        if as_json:
            terminal.say_json(figures, lines=watch)
        else:
            if watch and terminal.coloured():
                terminal.say_painted("\x1b[H\x1b[2J")
            grade = figures["queue_health"]
            severities = [f"{count} {name}" for name, count in figures["by_priority"].items()]
            waiting = f"{figures['unresolved']}/{figures['limits']['max_size']} open"
            painted = terminal.paint(grade, _COLOUR[grade])
            terminal.say_painted(f"{painted}: {waiting} ({', '.join(severities)})")
            terminal.say("\n".join(_lines(figures)))
        sys.stdout.flush()
        if not watch:
            return
        time.sleep(2)


def _lines(figures: Health) -> list[str]:
    limits, median = figures["limits"], figures["median_hours_to_resolve"]
    oldest = short_duration(timedelta(hours=figures["oldest_unresolved_age_hours"]))
    took = "" if median is None else short_duration(timedelta(hours=median))
    dropped = ", ".join(f"{count} {reason}" for reason, count in figures["dropped"].items())
    lines = [
        f"{figures['snoozed']} snoozed, {figures['total']} in the file",
        f"oldest open: {oldest}" if figures["unresolved"] else "",
        f"median time to resolve: {took}" if took else "",
        f"accepted {figures['accepted']}, merged {figures['merged']}, "
        f"counted {figures['counted']}, regressions {figures['regressions']}",
        f"dropped: {dropped or 'none'}",
    ]
    for title, counts, limit in (
        ("session", figures["sessions"], limits["max_per_session"]),
        ("error", figures["error_types"], limits["max_per_error_type"]),
    ):
        lines += [f"{title} {name}: {count}/{limit}" for name, count in counts.items() if count > 1]
    return list(filter(None, lines))


def report(
    output: Output = None,
    window: Annotated[Window, Option(help="How far back.")] = Window.MONTH,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write a page of HTML: what failed, how it was mended.

    It needs no network, and can be printed.
    """
    from interventions import report as reports

    found = reports.report(the_queue(home), window)
    if as_json and output is None:
        terminal.say_json(found)
    elif as_json:
        raise terminal.UsageError("--json prints the figures, and --output writes the page")
    else:
        terminal.say_to(output, reports.as_html(found))


def drain(home: Home = None, by: By = None, as_json: AsJson = False) -> None:
    """Put emergency entries back while there is room.

    The oldest critical ones go first.
    """
    from interventions.recovery import recover

    result = recover(the_queue(home), lost=False, by=by, via="cli")
    if as_json:
        terminal.say_json({"put": result.put, "left": result.left, "unusable": result.unusable})
    else:
        terminal.say(f"put back {len(result.put)}, left {result.left}")
        if result.left:
            terminal.note("the queue is full: resolve some, then drain again")
        if result.unusable:
            terminal.note(f"{result.unusable} lines of the emergency log are no failures")


def doctor(
    home: Home = None,
    check: Annotated[
        bool, Option("--check/--rebuild", help="Only look; or mend, and put back what was lost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find and mend what is wrong with the queue's files.

    A queue that was damaged is rebuilt from its logs.
    """
    from interventions.doctor import examine

    queue = the_queue(home)
    seen = examine(queue, mend=not check)
    findings = [replace(finding, todo=terminal.with_home(finding.todo)) for finding in seen]
    if as_json:
        terminal.say_json({"home": str(queue.home), "findings": list(map(asdict, findings))})
    else:
        for finding in findings:
            mark = "ok  " if finding.fine else "did " if finding.mended else "bad "
            painted = terminal.paint(mark, "bold" if finding.fine else "high")
            terminal.say_painted(painted + clean(finding.what))
            if finding.todo:
                terminal.say(f"      {finding.todo}")
    if not all(finding.fine or finding.mended for finding in findings):
        raise typer.Exit(terminal.Code.QUEUE)


def schema(home: Home = None, as_json: AsJson = False) -> None:
    """Print the JSON Schema of the queue file.

    For programs that read it.
    """
    from interventions.schema import queue_schema

    terminal.say_json(queue_schema())
