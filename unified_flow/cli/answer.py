"""How a turn that has ended is shown to a person: the answer with its sources, or the card."""

from __future__ import annotations

from pathlib import Path

from interventions.cli.terminal import note, say
from interventions.entry import short_id
from interventions.errors import QueueError
from interventions.plaintext import clean, home_flag, one_line
from interventions.secrets.redaction import redact_text
from unified_flow.cli.screen import on_terminal, wrapped
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.passage import public_text
from unified_flow.turns.turn import Turn


def show_outcome(turn: Turn, error: PhaseError | None, home: Path | None) -> None:
    """`home` is what was named on the command line, for the commands that the card proposes."""
    if error is not None:
        from rich.console import Console

        from unified_flow.cli.card import show_card

        known = _known_fixes(home, error.intervention_id)
        show_card(Console(stderr=True), turn, error, home_flag(home), known)
        return
    if not turn.should_respond:
        waits = turn.failure.intervention_id if turn.failure else None
        show = f" (interventions show {short_id(waits)}{home_flag(home)})" if waits else ""
        note(f"no answer: {redact_text(turn.error_message or '')}{show}")
        return
    response = public_text(turn.response or "")
    if on_terminal():
        print()
    say(wrapped(clean(response)))
    show_sources(turn, response)
    if turn.failure is not None:
        waits = turn.failure.intervention_id
        show = f"interventions show {short_id(waits)}{home_flag(home)}" if waits else ""
        news = show or "nobody was told"
        note(f"not saved: {turn.failure.error_message} ({news})")


def _known_fixes(home: Path | None, intervention_id: str | None) -> list[str]:
    """None if they cannot be read: the card tells of the failure itself all the same."""
    from interventions.queue import queue_at
    from interventions.view.description import known_fixes

    if intervention_id is None:
        return []
    try:
        return known_fixes(queue_at(home).similar(intervention_id))
    except QueueError:
        return []


def show_sources(turn: Turn, response: str = "") -> None:
    """The citations that `response` does not name itself."""
    rest = [c for c in turn.citations if c.source not in response]
    if not rest:
        return
    say("\nSources:")
    for citation in rest:
        quote = public_text(" ".join(citation.quote.split()))
        say(wrapped(clean(f"  {one_line(citation.source)}  “{quote}”")))
