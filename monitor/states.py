"""What an empty list says: what is the matter, and what to do."""

from __future__ import annotations

from textual.content import Content

from monitor.snapshot import Snapshot


def why_empty(snapshot: Snapshot, query: str) -> Content:
    trouble = snapshot.trouble
    if trouble is not None:
        return told(str(trouble.kind), trouble.what, trouble.todo)
    waiting = len(snapshot.open_entries)
    if waiting:
        return told("Nothing matches", f"{query}  ({waiting} open)", "esc clears the filter")
    closed = len(snapshot.entries)
    past = f"{closed} closed ones are in the history: press 2" if closed else "nothing waits"
    return told("No open interventions", past, "a new failure appears here by itself")


def told(title: str, what: str, todo: str) -> Content:
    return Content("\n\n").join(
        [Content.styled(title.upper(), "bold"), Content(what), Content.styled(todo, "dim")]
    )
