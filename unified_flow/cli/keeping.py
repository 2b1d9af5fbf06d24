"""`unified-flow turns abandon` and `turns prune`: what is not needed any more."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from interventions.cli.terminal import note, say
from unified_flow.cli import options
from unified_flow.cli.completing import turn_numbers


def abandon(
    turn: Annotated[
        int,
        typer.Argument(help="The turn's number.", autocompletion=turn_numbers, show_default=False),
    ],
    reason: Annotated[str, typer.Option("--note", "-m", help="Why.")] = "",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Give a turn up. Its open interventions say so, and can be closed in bulk.

    \b
    unified-flow turns abandon 12 --note "asked again as 15"
    interventions dismiss --query is:superseded --yes
    """
    from interventions.queue import queue_at
    from interventions.secrets.redaction import redact_text
    from unified_flow.resume.housekeeping import abandon as give_up
    from unified_flow.turns.archive import TurnArchive

    folders = TurnArchive.of(home).folders
    marked = give_up(folders, queue_at(home), turn, redact_text(reason))
    if as_json:
        say(json.dumps({"turn_id": turn, "status": "abandoned", "superseded": marked}))
    else:
        say(f"turn {turn} is abandoned")
        if marked:
            note(f"superseded: {marked}; next: interventions dismiss --query is:superseded")


def prune(
    older_than: Annotated[str, typer.Option("--older-than", help="12h, 30d, …")] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Remove old finished turns: answered, asked back, abandoned.

    Never one that an open intervention is about, that failed or was interrupted, nor the newest.

    \b
    unified-flow turns prune --older-than 30d --dry-run
    """
    from interventions.entry import turns_needed
    from interventions.queue import queue_at
    from interventions.times import parse_duration, utc_now
    from unified_flow.resume import housekeeping
    from unified_flow.turns.archive import TurnArchive

    age = parse_duration(older_than)
    if age is None:
        raise typer.BadParameter(f"{older_than!r} is no duration: 12h, 30d")
    archive = TurnArchive.of(home)
    before = utc_now() - age

    def keep() -> set[int]:
        return turns_needed(queue_at(home).entries())

    chosen = housekeeping.prunable(archive, keep(), before)
    done = 0
    if not dry_run:
        done = housekeeping.prune(archive.folders, chosen, keep=keep, before=before)
    if as_json:
        say(json.dumps({"turns": chosen, "removed": done}))
    else:
        names = ", ".join(map(str, chosen)) or "none"
        say(f"would remove: {names}" if dry_run else f"removed {done}: {names}")
