"""`unified-flow memory`: what is remembered of a user, for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument

from interventions.cli.terminal import say
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.secrets.redaction import redact_text
from unified_flow.cli import options
from unified_flow.cli.terminal import say_list, say_object, say_result

if TYPE_CHECKING:
    from pathlib import Path

    from unified_flow.turns.memory import MemoryRecord, MemoryStore


def list_memories(
    user: options.User = "default",
    limit: options.Limit = 0,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """What is remembered, oldest first, with its id.

    \b
    unified-flow memory list
    unified-flow memory list --user anna --json
    """
    records = _store(home).all(user)[-limit:]
    lines = []
    for record in records:
        made = f"{record.created_at:%Y-%m-%d}" if record.created_at else " " * 10
        turn = f"  (turn {record.turn_id})" if record.turn_id else ""
        text = " ".join(redact_text(record.text).split())
        lines.append(f"{record.id:<8} {made}  {text}{turn}")
    found = {"user": user, "memories": [_row(record) for record in records]}
    say_list(as_json, found, lines, f"nothing is remembered of {user}: unified-flow memory add '…'")


def add(
    text: Annotated[str, Argument(help="What to remember.")],
    user: options.User = "default",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Remember something. What looks like a password, key or token is refused.

    \b
    unified-flow memory add "I work with ROS 2 Humble on Ubuntu"
    """
    record = _store(home).create(user, text)
    say_result(as_json, _row(record), record.id)


def delete(
    ids: Annotated[list[str], Argument(help="As memory list shows.")],
    user: options.User = "default",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Delete memories by their ids.

    Ids that exist are deleted even if others do not.

    \b
    unified-flow memory delete m3fa9c1 m77b0e2
    """
    gone = [record.id for record in _store(home).delete(user, ids)]
    missing = [each for each in dict.fromkeys(ids) if each not in gone]
    if as_json:
        say_object({"deleted": gone, "not_found": missing})
    elif gone:
        say(f"deleted: {', '.join(gone)}")
    if missing:
        raise NotFoundError(
            f"{user} has no memory {', '.join(missing)}", hint="unified-flow memory list"
        )


def _store(home: Path | None) -> MemoryStore:
    from unified_flow.stores import memory_store

    return memory_store(find_home(home))


def _row(record: MemoryRecord) -> dict[str, object]:
    row = record.model_dump(mode="json")
    return {**row, "text": redact_text(record.text)}
