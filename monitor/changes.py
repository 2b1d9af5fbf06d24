"""Doing one thing to several entries: what was done, and what was refused and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from interventions.entry import Entry, short_id
from interventions.errors import QueueError
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.redaction import redact_text
from interventions.resumers import RetryFailedError

VIA = "monitor"
Change = Callable[[Entry], Entry]


@dataclass(frozen=True)
class Refused:
    entry: Entry
    why: str


@dataclass(frozen=True)
class Outcome:
    """`done` are the entries as they are after the change."""

    action: str
    done: tuple[Entry, ...] = ()
    refused: tuple[Refused, ...] = ()

    def told(self) -> str:
        """`resolved 2: a1b2c3, d4e5f6`"""
        names = ", ".join(short_id(entry["id"]) for entry in self.done[:5])
        more = f" and {len(self.done) - 5} more" if len(self.done) > 5 else ""
        return f"{self.action} {len(self.done)}: {names}{more}"


def apply(action: str, targets: Sequence[Entry], change: Change) -> Outcome:
    """Each in turn; a refusal of one does not stop the others."""
    done, refused = [], []
    for entry in targets:
        try:
            done.append(change(entry))
        except QueueError as error:
            hint = f" ({error.hint})" if error.hint else ""
            refused.append(Refused(entry, one_line(f"{error}{hint}")))
        except RetryFailedError as error:
            # Whether the fix did anything: the error before and the one now.
            why = "; ".join(error.difference) or str(error)
            refused.append(Refused(entry, one_line(f"failed again: {redact_text(why)}")))
        except ValueError as error:
            refused.append(Refused(entry, one_line(str(error))))
    return Outcome(action, tuple(done), tuple(refused))


def undo(queue: InterventionQueue, outcome: Outcome) -> Outcome:
    """Take back what was done, unless somebody changed the entry since."""

    def back(entry: Entry) -> Entry:
        return queue.undo(entry["id"], expected_version=entry["version"], via=VIA)[1]

    return apply(f"undid: {outcome.action}", outcome.done, back)
