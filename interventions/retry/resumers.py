"""What can continue a turn, found through the entry point group `interventions.resumers`.

A resumer is an object with `resume(turn_id, home, **options)`; `options` holds `intervention_id`,
so that a failure of the resumed turn can name the entry it is a retry of (`retry_of`), and what
`retry` was given: `note` closes the entry once its phase has completed; `answer` is what the
person wrote, for a turn that asked one; `grant` (once, session or always) lets a tool run that was
refused; `from_phase` starts earlier; `started(phase, changed)` is told where the turn goes on and
what has changed since it stopped, before anything runs; `edit(name, text)` lets a person change the
phase's input; `rerun_tools`, `tools_done` and `ask(call)` say what becomes of a call that may have
written (BegunCall). It raises when the turn fails again, or answers a mapping whose `status` is
`failed`, unless that says `passed`: the phase that had failed has completed, and a later one
failed. `waiting` is another turn for whose sake the entry stays open. Any other answer is success.
A QueueError means that the turn cannot be resumed, and nothing has happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from interventions.entry import Entry
from interventions.errors import ConflictError, NoResumerError, QueueError

GROUP = "interventions.resumers"


Scope = Literal["once", "session", "always"]
Settled = Literal["again", "done", "leave"]


@dataclass(frozen=True)
class BegunCall:
    """A call of a tool that writes which would be made again. `unfinished`: it had begun and not
    ended when the turn stopped, so that it may count as done; else it has written already."""

    turn_id: int
    tool: str
    args: Mapping[str, Any]
    unfinished: bool


class Resumer(Protocol):
    def resume(self, turn_id: int, home: Path, **options: Any) -> Any: ...


class RetryFailedError(Exception):
    """The turn was resumed and failed again; `str` says how, `difference` in what it differs."""

    def __init__(self, message: str, difference: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.difference = tuple(difference)


def has_resumer() -> bool:
    """Whether one is registered; it is not loaded, which may take long."""
    from importlib.metadata import entry_points  # late: it costs as much as the whole of --help

    return bool(entry_points(group=GROUP))


def find_resumer() -> Resumer:
    """Raises NoResumerError when none is installed or it cannot be loaded."""
    resumer: Resumer | None = registered(GROUP, "the resumer")
    if resumer is not None:
        return resumer
    raise NoResumerError(
        "nothing that is installed can continue a turn",
        hint=f"a program registers what can under the entry point group {GROUP!r}; "
        "until then mend the cause, ask again, and resolve with a note",
    )


def registered(group: str, what: str) -> Any:
    """The object of an entry point group, None without one. Raises NoResumerError."""
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            found = point.load()
        except Exception as error:  # a foreign module may raise anything when it is imported
            raise NoResumerError(
                f"{what} {point.name!r} ({point.value}) cannot be loaded: {error}",
                hint="mend or uninstall the package that registers it",
            ) from error
        return found() if isinstance(found, type) else found
    return None


def retry(
    entry: Entry, home: Path, *, turn_id: int | None = None, **options: Any
) -> Mapping[str, Any]:
    """Resume the entry's turn, or another that it blocks.

    Raises RetryFailedError, NoResumerError or another QueueError.
    """
    own = turn_id in (None, entry["turn_id"])
    if own and not entry["turn_id"]:
        raise ConflictError(
            f"{entry['id']} belongs to no turn, so there is nothing to retry",
            hint="mend the cause and resolve it with a note",
        )
    resumer = find_resumer()
    try:
        named = entry["id"] if own else None
        answer = resumer.resume(turn_id or entry["turn_id"], home, intervention_id=named, **options)
    except QueueError:
        raise
    except Exception as error:  # whatever the resumed turn raises is a retry that failed
        raise RetryFailedError(f"{type(error).__name__}: {error}") from error
    result = answer if isinstance(answer, Mapping) else {}
    if result.get("status") == "failed" and not result.get("passed"):
        raise RetryFailedError(
            str(result.get("message") or result.get("error") or "it failed again"),
            result.get("difference") or (),
        )
    return result
