"""`list`, `show`, `history`, `similar`, `export` and `watch`: entries to read or to send.

In a table failures of one fingerprint are one row, and it fits the width.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from interventions.cli.options import (
    AsJson,
    AsJsonl,
    AsLines,
    Home,
    Id,
    Limit,
    QueryWords,
    Session,
    query_of,
    read_entries,
    the_queue,
)
from interventions.cli.terminal import (
    Code,
    UsageError,
    note,
    paint,
    say,
    say_json,
    say_painted,
    width,
)
from interventions.entry import (
    Entry,
    closed_at,
    is_open,
    latest_failure,
    short_id,
    worst_first,
)
from interventions.home import PRIVATE_FILE_MODE, find_home, queue_file
from interventions.plaintext import cells, clean, fit, home_flag, one_line
from interventions.times import utc_now
from interventions.view.groups import Group, entry_view, grouped, marks, single
from interventions.view.others import SEVERITY_WORDS, last_news

_POLL_S = 0.25


def list_(
    query: QueryWords = None,
    home: Home = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
    flat: Annotated[
        bool, typer.Option("--flat", help="Every entry a row; do not group what is alike.")
    ] = False,
    session: Session = None,
    limit: Limit = 0,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if anything matched.")
    ] = False,
) -> None:
    """Open interventions, the worst and latest first."""
    wanted = query_of(query, session)
    now = utc_now()
    entries = read_entries(home)
    matching = worst_first(wanted.select(entries, now))
    found = matching[: limit or None]
    if not _as_data(found, now, as_json, as_jsonl):
        _as_table(found, now, flat=flat)
        total = sum(1 for entry in entries if is_open(entry))
        if not found:
            note(f"nothing matches; {total} open" if wanted.text else "no open interventions")
        else:
            left = f" of {len(matching)}" if len(matching) > len(found) else ""
            note(f"{len(found)}{left} shown, {total} open")
    if exit_code and found:
        raise typer.Exit(Code.FAILED)


def history(
    query: QueryWords = None,
    home: Home = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
    session: Session = None,
    limit: Limit = 50,
) -> None:
    """Closed interventions, those of the archive included, the latest first."""
    wanted = query_of(query, session)
    now = utc_now()
    found = (entry for entry in the_queue(home).closed() if wanted.matches(entry, now))
    shown = list(islice(found, limit or None))
    if not _as_data(shown, now, as_json, as_jsonl):
        _as_table(shown, now, flat=True)
        more = ", and there are more" if next(found, None) else ""
        note(f"{len(shown)} closed{more}" if shown else "nothing was closed yet")


def similar(
    intervention_id: Id,
    home: Home = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
    limit: Limit = 0,
) -> None:
    """Past resolutions of the same failure."""
    found = the_queue(home).similar(intervention_id)[: limit or None]
    now = utc_now()
    if not _as_data(found, now, as_json, as_jsonl):
        _as_table(found, now, flat=True)
        note(f"{len(found)} resolved before" if found else "this failure was never resolved before")


def _as_data(entries: list[Entry], now: datetime, as_json: bool, as_jsonl: bool) -> bool:
    if as_json and as_jsonl:
        raise UsageError("--json and --jsonl are two forms", hint="choose one")
    views = [entry_view(entry, now) for entry in entries]
    if as_jsonl:
        for view in views:
            say_json(view, lines=True)
    elif as_json:
        groups = [
            {
                "fingerprint": group.first["fingerprint"],
                "ids": [entry["id"] for entry in group.entries],
                "occurrences": group.occurrences,
            }
            for group in grouped(entries)
        ]
        say_json({"count": len(views), "interventions": views, "groups": groups})
    return as_json or as_jsonl


def _as_table(entries: list[Entry], now: datetime, *, flat: bool) -> None:
    groups = single(entries) if flat else grouped(entries)
    if groups:
        for line in table(groups, width(), now):
            say_painted(line)


def show(intervention_id: Id, home: Home = None, as_json: AsJson = False) -> None:
    """Everything about one intervention, and the commands to go on."""
    from interventions.retry.entry_points import has_resumer
    from interventions.view.description import describe

    queue = the_queue(home)
    now = utc_now()
    entry = queue.find(intervention_id)
    past = queue.similar(entry["id"])
    journal = queue.journal(entry["id"])
    if as_json:
        view = entry_view(entry, now)
        say_json({**view, "similar": [entry_view(e, now) for e in past], "journal": journal})
        return
    flag = home_flag(home)
    for section in describe(entry, past, journal, now, home_flag=flag, resumer=has_resumer()):
        say_painted(paint(section.title, "bold"))
        for line in section.lines:
            say(f"  {line}" if line else "")
        say("")


def export(
    intervention_id: Id,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write this file instead of stdout.", show_default=False
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--as", metavar="FORM", help="json, markdown, or pytest: a test of its turn."),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """One intervention, redacted once more, to hand on."""
    if form not in (None, "json", "markdown", "pytest"):
        raise typer.BadParameter(f"{form!r} is no form: json, markdown or pytest")
    if as_json and form not in (None, "json"):
        raise typer.BadParameter("--json is another form than the one that is asked for")
    from interventions.view import description

    queue = the_queue(home)
    entry = queue.find(intervention_id)
    if form == "pytest":
        from interventions.retry.entry_points import find_turn_reader

        text = find_turn_reader().as_pytest(entry, queue.home)
    else:
        past, journal = queue.similar(entry["id"]), queue.journal(entry["id"])
        render = description.as_markdown if form == "markdown" else description.as_json
        text = render(entry, past, journal, utc_now())
    text = clean(text)
    if output is None:
        say(text)
        return
    try:
        fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE_MODE)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
    note(f"wrote {output}")


def watch(
    query: QueryWords = None,
    home: Home = None,
    as_json: AsLines = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Begin with those that are open already.")
    ] = False,
    session: Session = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="End after so many; 0: never.")
    ] = 0,
) -> None:
    """Print interventions that are new, or hold a new failure, as they come, until interrupted."""
    wanted = query_of(query, session)
    path = queue_file(find_home(home))
    known = {} if everything else {entry["id"]: last_news(entry) for entry in read_entries(home)}
    printed = 0
    note(f"watching {path}")
    for _ in _changes(path):
        now = utc_now()
        for entry in wanted.select(read_entries(home), now):
            if known.get(entry["id"]) == last_news(entry):
                continue
            known[entry["id"]] = last_news(entry)
            if as_json:
                say_json(entry_view(entry, now), lines=True)
            else:
                for line in table(single([entry]), width(), now)[1:]:
                    say_painted(line)
            sys.stdout.flush()
            printed += 1
            if limit and printed >= limit:
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


class _Column(NamedTuple):
    title: str
    value: Callable[[Group], str]
    widest: int
    from_width: int = 0


def table(groups: list[Group], width: int, now: datetime) -> list[str]:
    columns = [
        _Column("ID", lambda g: short_id(g.first["id"]), 8),
        _Column("SEV", lambda g: SEVERITY_WORDS.get(g.first["severity"], "?"), 4),
        _Column("LAST", lambda g: g.ago(now), 4),
        _Column("N", lambda g: str(g.occurrences), 5),
        _Column("PHASE", lambda g: g.first["phase"], 16),
        _Column("TOOL", lambda g: latest_failure(g.first).get("tool") or "", 16, from_width=90),
        _Column("SESSION", lambda g: g.first["session_id"], 14, from_width=110),
    ]
    shown = [column for column in columns if width >= column.from_width]
    values = [[one_line(column.value(group)) for column in shown] for group in groups]
    sizes = [
        min(max([cells(column.title), *(cells(row[n]) for row in values)]), column.widest)
        for n, column in enumerate(shown)
    ]
    rest = max(width - sum(sizes) - 2 * len(sizes), 12)
    titles = [fit(column.title, size) for column, size in zip(shown, sizes, strict=True)]
    lines = [paint("  ".join([*titles, "ERROR"]), "dim")]
    for group, row in zip(groups, values, strict=True):
        fields = [fit(value, size) for value, size in zip(row, sizes, strict=True)]
        fields[1] = paint(fields[1], group.first["severity"])
        what = " ".join([*marks(group, now, new=group.is_new(now)), group.error])
        lines.append("  ".join([*fields, fit(what, rest).rstrip()]))
        lines += [paint(fit(line, width).rstrip(), "dim") for line in _remarks(group)]
    return lines


def _remarks(group: Group) -> list[str]:
    """What a person needs beside the row: the earlier note, the resolution, who has it."""
    entry = group.first
    lines = []
    if regression_of := entry.get("regression_of"):
        note = one_line(entry.get("regression_note") or "no note")
        lines.append(f"  was resolved in {short_id(regression_of)}: {note}")
    what = entry["resolution"] if closed_at(entry) else entry.get("superseded")
    if what:
        lines.append(f"  {one_line(what)}")
    if owner := entry.get("owner"):
        lines.append(f"  assigned to {one_line(owner)}")
    if len(group.entries) > 1:
        others = ", ".join(short_id(other["id"]) for other in group.entries[1:])
        lines.append(f"  also {others}")
    return lines
