"""`list`, `show`, `history`, `similar`, `export` and `watch`: entries to read or to send.

In a table failures of one fingerprint are one row, and it fits the width.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, Unpack

import typer
from typer import Option

from interventions.cli import options, terminal
from interventions.cli.options import query_of, read_entries, the_home, the_queue
from interventions.cli.terminal import Code, UsageError
from interventions.entry import Entry, closed_at, is_open, latest_failure, short_id, worst_first
from interventions.plaintext import cells, fit, one_line
from interventions.times import utc_now
from interventions.view import groups
from interventions.view.groups import Group, entry_view

_POLL_S = 0.25


def list_(
    query: options.QueryWords = None,
    flat: Annotated[
        bool, Option("--flat", help="Every entry a row; do not group what is alike.")
    ] = False,
    limit: options.Limit = 0,
    exit_code: Annotated[
        bool, Option("--exit-code", help="Exit with 1 if anything matched.")
    ] = False,
    **flags: Unpack[options.ListFlags],
) -> None:
    """Open interventions, the worst and latest first."""
    wanted = query_of(query, flags["session"])
    now = utc_now()
    entries = read_entries(flags["home"])
    matching = worst_first(wanted.select(entries, now))
    found = matching[: limit or None]
    total = sum(map(is_open, entries))
    left = f" of {len(matching)}" if len(matching) > len(found) else ""
    remark = f"{len(found)}{left} shown, {total} open"
    if not found:
        remark = f"nothing matches; {total} open" if wanted.text else "no open interventions"
        if "phase:" in wanted.text:
            phases = sorted({entry["phase"] for entry in entries}) or ["none"]
            remark += f"; phases of what is in the queue: {', '.join(phases)}"
    _print(found, remark, flags, flat=flat)
    if exit_code and found:
        raise typer.Exit(Code.FAILED)


def history(
    query: options.QueryWords = None, limit: options.Limit = 50, **flags: Unpack[options.ListFlags]
) -> None:
    """Closed interventions, the latest first.

    Those of the archive are among them.
    """
    wanted = query_of(query, flags["session"])
    now = utc_now()
    found = (entry for entry in the_queue(flags["home"]).closed() if wanted.matches(entry, now))
    shown = list(islice(found, limit or None))
    more = ", and there are more" if next(found, None) else ""
    nothing = "nothing closed matches" if wanted.text else "nothing was closed yet"
    remark = f"{len(shown)} closed{more}" if shown else nothing
    _print(shown, remark, flags)


def similar(
    intervention_id: options.Id, limit: options.Limit = 0, **flags: Unpack[options.PrintFlags]
) -> None:
    """Past resolutions of the same failure."""
    found = the_queue(flags["home"]).similar(intervention_id)[: limit or None]
    never = "this failure was never resolved before"
    _print(found, f"{len(found)} resolved before" if found else never, flags)


def _print(
    entries: list[Entry], remark: str, flags: options.PrintFlags, *, flat: bool = True
) -> None:
    """Print the entries as JSON, or as a table with the remark below."""
    if flags["as_json"] and flags["as_jsonl"]:
        raise UsageError("--json and --jsonl are two forms", hint="choose one")
    now = utc_now()
    if flags["as_jsonl"]:
        for entry in entries:
            terminal.say_json(entry_view(entry, now), lines=True)
    elif flags["as_json"]:
        views = [entry_view(entry, now) for entry in entries]
        alike = [
            {
                "fingerprint": group.first["fingerprint"],
                "ids": [entry["id"] for entry in group.entries],
                "occurrences": group.occurrences,
            }
            for group in groups.grouped(entries)
        ]
        terminal.say_json({"count": len(views), "interventions": views, "groups": alike})
    else:
        rows = groups.single(entries) if flat else groups.grouped(entries)
        home = the_home(flags["home"])
        for line in table(rows, terminal.width(), now, home) if rows else ():
            terminal.say_painted(line)
        terminal.note(remark)


def show(
    intervention_id: options.Id, home: options.Home = None, as_json: options.AsJson = False
) -> None:
    """Everything about one intervention, and the commands to go on."""
    from interventions.retry.contract import has_resumer
    from interventions.view.description import Kind, describe

    queue = the_queue(home)
    now = utc_now()
    entry = queue.find(intervention_id)
    past = queue.similar(entry["id"])
    journal = queue.journal(entry["id"])
    if as_json:
        similar_ones = [entry_view(each, now) for each in past]
        terminal.say_json({**entry_view(entry, now), "similar": similar_ones, "journal": journal})
        return
    for section in describe(entry, past, journal, now, resumer=has_resumer()):
        terminal.say_painted(terminal.paint(section.title, "bold"))
        for line in section.lines:
            shown = terminal.with_home(line) if section.kind is Kind.COMMANDS else line
            terminal.say(f"  {shown}" if line else "")
        terminal.say("")


def export(
    intervention_id: options.Id,
    output: options.Output = None,
    form: Annotated[
        Literal["json", "markdown", "pytest"],  # `FormName`, whose module a list does not need
        Option("--as", help="pytest is a test of its turn."),
    ] = "json",
    home: options.Home = None,
    as_json: options.AsJson = False,
) -> None:
    """One intervention, redacted once more, to hand on."""
    from interventions.export import exported

    if as_json and form != "json":
        raise typer.BadParameter("--json is another form than the one that is asked for")
    queue = the_queue(home)
    terminal.say_to(output, exported(queue, queue.find(intervention_id), form, utc_now()))


def watch(
    query: options.QueryWords = None,
    home: options.Home = None,
    as_json: options.AsLines = False,
    everything: Annotated[
        bool, Option("--all", help="Begin with those that are open already.")
    ] = False,
    session: options.Session = None,
    limit: Annotated[int, Option("--limit", "-n", min=0, help="End after so many; 0: never.")] = 0,
) -> None:
    """Print new interventions and failures as they come.

    Ctrl-C ends it.
    """
    from interventions.storage.file_store import store_at

    wanted = query_of(query, session)
    store = store_at(the_home(home))
    before = [] if everything else read_entries(home)
    known = {entry["id"]: groups.last_news(entry) for entry in before}
    printed, seen = 0, object()
    terminal.note(f"watching the queue of {the_home(home)}")
    while True:
        if (stamp := store.stamp()) == seen:
            time.sleep(_POLL_S)
            continue
        seen, now = stamp, utc_now()
        for entry in wanted.select(read_entries(home), now):
            if known.get(entry["id"]) == groups.last_news(entry):
                continue
            known[entry["id"]] = groups.last_news(entry)
            if as_json:
                terminal.say_json(entry_view(entry, now), lines=True)
            else:
                lines = table(groups.single([entry]), terminal.width(), now, the_home(home))
                terminal.say_painted("\n".join(lines[1:]))
            sys.stdout.flush()
            printed += 1
            if limit and printed >= limit:
                return


_LEAST_ERROR = 12
# The title of each column, its most cells, and the width of the terminal from which it is shown.
_COLUMNS: tuple[tuple[str, int, int, Callable[[Group, datetime], str]], ...] = (
    ("ID", 8, 0, lambda group, _: short_id(group.first["id"])),
    ("SEV", 4, 0, lambda group, _: groups.SEVERITY_WORDS.get(group.first["severity"], "?")),
    ("LAST", 4, 0, lambda group, now: group.ago(now)),
    ("N", 5, 0, lambda group, _: str(group.occurrences)),
    ("PHASE", 16, 0, lambda group, _: group.first["phase"]),
    ("TOOL", 16, 90, lambda group, _: latest_failure(group.first).get("tool") or ""),
    ("SESSION", 14, 110, lambda group, _: group.first["session_id"]),
)


def table(found: list[Group], width: int, now: datetime, home: Path | None = None) -> list[str]:
    """Files of `home` are named from there: a long path would leave no room for the error."""
    shown = [column for column in _COLUMNS if width >= column[2]]
    titles = [title for title, *_ in shown]
    values = [[one_line(value(group, now)) for *_, value in shown] for group in found]
    needed = (max(map(cells, column)) for column in zip(titles, *values, strict=True))
    sizes = [min(most, widest) for most, (_, widest, *_) in zip(needed, shown, strict=True)]
    rest = width - sum(sizes) - 2 * len(sizes)
    if rest < _LEAST_ERROR:  # of a narrow terminal: the phase makes room
        phase = max(4, sizes[4] - (_LEAST_ERROR - rest))
        rest, sizes[4] = rest + sizes[4] - phase, phase
    heads, *rows = ([*map(fit, row, sizes)] for row in (titles, *values))
    lines = [terminal.paint("  ".join([*heads, "ERROR"]), "dim")]
    for group, fields in zip(found, rows, strict=True):
        fields[1] = terminal.paint(fields[1], group.first["severity"])
        error = group.error.replace(f"{home}/", "") if home else group.error
        what = " ".join([*groups.marks(group, now, new=group.is_new(now)), error])
        lines.append("  ".join([*fields, fit(what, rest).rstrip()]))
        lines += [terminal.paint(fit(line, width).rstrip(), "dim") for line in _remarks(group)]
    return lines


def _remarks(group: Group) -> list[str]:
    """What a person needs beside the row: the earlier note, the resolution, who has it."""
    entry, earlier = group.first, group.first["regression_of"]
    note = one_line(entry["regression_note"] or "no note")
    others = ", ".join(short_id(other["id"]) for other in group.entries[1:])
    remarks = (
        f"was resolved in {short_id(earlier)}: {note}" if earlier else "",
        one_line((entry["resolution"] if closed_at(entry) else entry["superseded"]) or ""),
        f"assigned to {one_line(entry['owner'])}" if entry["owner"] else "",
        f"also {others}" if others else "",
    )
    return [f"  {remark}" for remark in remarks if remark]
