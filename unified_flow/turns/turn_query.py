"""Which turns a list, or a change of many, is about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from unified_flow.turns.turn import Turn


@dataclass(frozen=True)
class TurnQuery:
    """All of it must hold; None asks for nothing. `status`, `session` and `phase` (where the turn
    failed, or stopped) are whole words; `error`, `model` and `text` are parts of what the failure
    says, of a model's name, and of the question or the answer, in any case. `since` and `before`
    bound the time at which the turn began."""

    status: str | None = None
    phase: str | None = None
    session: str | None = None
    error: str | None = None
    model: str | None = None
    text: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return self == TurnQuery()

    def takes(self, turn: Turn) -> bool:
        began, failure = turn.started_at, turn.failure
        stopped_in = failure.phase if failure is not None else turn.stopped_in
        said = f"{failure.error_type}: {failure.error_message}" if failure is not None else ""
        words = ((self.status, turn.status), (self.phase, stopped_in))
        return (
            all(wanted in (None, found) for wanted, found in words)
            and self.session in (None, turn.session_id)
            and _within(self.error, said, failure.category if failure is not None else "")
            and _within(self.model, *(visit.model or "" for visit in turn.visits))
            and _within(self.text, turn.question, turn.response or "")
            and (self.since is None or (began is not None and began >= self.since))
            and (self.before is None or (began is not None and began < self.before))
        )


def _within(wanted: str | None, *texts: str) -> bool:
    return wanted is None or any(wanted.casefold() in text.casefold() for text in texts)
