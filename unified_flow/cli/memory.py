"""`unified-flow memory`: what is remembered of a user, for the user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from interventions.cli.terminal import Code, note, say
from interventions.plaintext import clean
from interventions.secrets.redaction import redact_text
from unified_flow.cli import options
from unified_flow.cli.completing import memory_ids

if TYPE_CHECKING:
    from pathlib import Path

    from unified_flow.turns.memory import MemoryRecord, MemoryStore


User = Annotated[str, typer.Option("--user", "-u", help="Whose memories.")]


def list_memories(
    user: User = "default", as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """What is remembered, oldest first, with its id.

    \b
    unified-flow memory list
    unified-flow memory list --user anna --json
    """
    records = _store(home).all(user)
    if as_json:
        shown = {"user": user, "memories": [_row(record) for record in records]}
        say(json.dumps(shown, ensure_ascii=False))
    elif not records:
        note(f"nothing is remembered of {user}: unified-flow memory add '…'")
    for record in records if not as_json else ():
        made = f"{record.created_at:%Y-%m-%d}" if record.created_at else " " * 10
        turn = f"  (turn {record.turn_id})" if record.turn_id else ""
        text = " ".join(redact_text(record.text).split())
        say(clean(f"{record.id:<8} {made}  {text}{turn}"))


def add(
    text: Annotated[str, typer.Argument(help="What to remember.", show_default=False)],
    user: User = "default",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Remember something. What looks like a password, key or token is refused.

    \b
    unified-flow memory add "I work with ROS 2 Humble on Ubuntu"
    """
    record = _store(home).create(user, text)
    say(json.dumps(_row(record), ensure_ascii=False) if as_json else record.id)


def delete(
    ids: Annotated[
        list[str],
        typer.Argument(help="As memory list shows.", autocompletion=memory_ids, show_default=False),
    ],
    user: User = "default",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Forget. What is not there is said, and the rest is forgotten all the same.

    \b
    unified-flow memory delete m3fa9c1 m77b0e2
    """
    gone = [record.id for record in _store(home).delete(user, ids)]
    missing = [each for each in dict.fromkeys(ids) if each not in gone]
    if as_json:
        say(json.dumps({"deleted": gone, "not_found": missing}, ensure_ascii=False))
    elif gone:
        say(f"forgotten: {', '.join(gone)}")
    if missing:
        note(clean(f"error: {user} has no memory {', '.join(missing)}"))
        note("  hint: unified-flow memory list")
        raise typer.Exit(Code.NOT_FOUND)


def _store(home: Path | None) -> MemoryStore:
    from interventions.home import find_home
    from unified_flow.turns.memory import MemoryStore

    return MemoryStore.of(find_home(home))


def _row(record: MemoryRecord) -> dict[str, object]:
    row = record.model_dump(mode="json")
    return {**row, "text": redact_text(record.text)}
