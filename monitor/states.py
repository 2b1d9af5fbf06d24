"""What an empty list says, and what stands above rows: what is the matter, and what to do."""

from __future__ import annotations

from textual.content import Content

from monitor.core.snapshot import Kind, Snapshot


def why_empty(snapshot: Snapshot, query: str) -> Content:
    trouble = snapshot.trouble
    if trouble is not None:
        return told(str(trouble.kind), trouble.what, trouble.todo)
    waiting = len(snapshot.open_entries)
    if waiting:
        return told("Nothing matches", f"{query}  ({waiting} open)", "esc clears the filter")
    closed = len(snapshot.entries)
    past = f"{closed} closed, in the history: press 2" if closed else "nothing waits"
    return told("No open interventions", past, "a new failure appears here by itself")


def notice(snapshot: Snapshot, more: str, *, of_open: bool) -> str:
    """What keeps the rows from being the whole truth (`more`, too), or from being acted on; what
    concerns acting only is said above the open ones (`of_open`) alone."""
    trouble = snapshot.trouble
    if trouble is not None and trouble.kind is Kind.FIRST_RUN:
        trouble = None  # other tabs may have rows all the same
    lines = [trouble.what, trouble.todo] if trouble else []
    if of_open and snapshot.read_only:
        lines.append(f"read-only: {snapshot.read_only}; nothing can be changed from here")
    if of_open and snapshot.locked:
        lines.append(
            f"locked: by {snapshot.locked} for a while now; a change waits for it, then is "
            "refused. If it hangs, end it: the lock goes with it"
        )
    return "\n".join([*lines, *filter(None, [more])])


def told(title: str, what: str, todo: str) -> Content:
    return Content("\n\n").join(
        [Content.styled(title.upper(), "bold"), Content(what), Content.styled(todo, "dim")]
    )
