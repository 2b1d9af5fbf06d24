"""`list`, `history` and `similar`: many entries, a line each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from interventions.cli.exits import Code, UsageError, exits
from interventions.cli.options import (
    AsJson,
    AsJsonl,
    Home,
    Id,
    QueryWords,
    read_entries,
    the_queue,
)
from interventions.cli.rows import table
from interventions.cli.screen import note, say_json, say_painted, width
from interventions.cli.view import entry_view
from interventions.entry import Entry, is_open, worst_first
from interventions.timestamps import utc_now
from interventions.view.grouping import grouped, single
from interventions.view.query import parse


def list_(
    query: QueryWords = None,
    home: Home = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
    flat: Annotated[
        bool, typer.Option("--flat", help="Every entry a row; do not group what is alike.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if anything matched.")
    ] = False,
) -> None:
    """Open interventions, the worst and newest first."""
    with exits():
        wanted = parse(" ".join(query or []))
        now = utc_now()
        entries = read_entries(home)
        found = worst_first(wanted.select(entries, now))
        if not _as_data(found, now, as_json, as_jsonl):
            _as_table(found, now, flat=flat)
            total = sum(1 for entry in entries if is_open(entry))
            if not found:
                note(f"nothing matches; {total} open" if wanted.text else "no open interventions")
            else:
                note(f"{len(found)} shown, {total} open")
        if exit_code and found:
            raise typer.Exit(Code.FAILED)


def history(
    query: QueryWords = None,
    home: Home = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="At most so many; 0: all.")
    ] = 50,
) -> None:
    """Closed interventions, those of the archive included, the latest first."""
    with exits():
        wanted = parse(" ".join(query or []))
        now = utc_now()
        found = [entry for entry in the_queue(home).history() if wanted.matches(entry, now)]
        shown = found[:limit] if limit else found
        if not _as_data(shown, now, as_json, as_jsonl):
            _as_table(shown, now, flat=True)
            note(f"{len(shown)} of {len(found)} closed" if found else "nothing was closed yet")


def similar(
    intervention_id: Id, home: Home = None, as_json: AsJson = False, as_jsonl: AsJsonl = False
) -> None:
    """Past resolutions of the same failure."""
    with exits():
        found = the_queue(home).similar(intervention_id)
        now = utc_now()
        if not _as_data(found, now, as_json, as_jsonl):
            _as_table(found, now, flat=True)
            note(
                f"{len(found)} resolved before"
                if found
                else "this failure was never resolved before"
            )


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
