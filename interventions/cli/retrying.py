"""`retry --all`: many turns, with progress and a summary."""

from __future__ import annotations

from collections import Counter

import typer

from interventions.cli.exits import Code
from interventions.cli.screen import note, say, say_json
from interventions.entry import Entry
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.redaction import redact_text
from interventions.resumers import find_resumer
from interventions.retrying import Outcome, retry_all, waiting


def retry_everything(
    queue: InterventionQueue,
    entry: Entry,
    note_text: str,
    *,
    by: str | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Exits with 1 if a turn failed again; what passed is resolved, verified."""
    find_resumer()
    turns = waiting(entry, queue.entries())
    outcomes = retry_all(
        turns,
        queue.home,
        jobs=jobs,
        progress=_quiet if as_json else _tell,
        note=note_text or f"retried, and it got past {entry['phase']}",
        by=by,
        via="cli",
    )
    counts = Counter(outcome.came for outcome in outcomes)
    if as_json:
        rows: dict[str, list[dict[str, object]]] = {"passed": [], "failed": [], "skipped": []}
        for outcome in outcomes:
            rows[outcome.came].append({"turn_id": outcome.turn_id, "what": outcome.what})
        say_json({"id": entry["id"], **rows})
    else:
        say(f"passed {counts['passed']}, failed {counts['failed']}, skipped {counts['skipped']}")
    if counts["failed"]:
        raise typer.Exit(Code.FAILED)


def _tell(outcome: Outcome, done: int, total: int) -> None:
    what = one_line(redact_text(outcome.what))
    note(f"{done}/{total} turn {outcome.turn_id}: {outcome.came}: {what}")


def _quiet(outcome: Outcome, done: int, total: int) -> None:
    return
