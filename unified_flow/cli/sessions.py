"""`unified-flow sessions`: conversations that were kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interventions.cli.options import Yes
from interventions.cli.terminal import Code, note, say
from interventions.plaintext import clean
from interventions.secrets.redaction import redact, redact_text
from unified_flow.cli import options
from unified_flow.cli.chat import HISTORY
from unified_flow.cli.completing import session_ids
from unified_flow.cli.screen import beginning

if TYPE_CHECKING:
    from unified_flow.turns.archive import TurnArchive
    from unified_flow.turns.sessions.book import Exchange, SessionBook
    from unified_flow.turns.turn import Turn


Session = Annotated[
    str, typer.Argument(help="The session's id.", autocompletion=session_ids, show_default=False)
]


def list_sessions(
    limit: Annotated[int, typer.Option(min=1, help="How many at most, newest first.")] = 20,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """The latest sessions, newest first.

    \b
    unified-flow sessions list --limit 5
    """
    from dataclasses import asdict

    book, _ = _stores(home)
    found = book.sessions(limit)
    if as_json:
        say(json.dumps({"sessions": redact([asdict(s) for s in found])}, ensure_ascii=False))
    elif not found:
        note("no sessions yet: unified-flow chat, or unified-flow ask '…' --session NAME")
    for each in found if not as_json else []:
        word = "turn " if each.turns == 1 else "turns"
        head = f"{each.session_id:<24} {each.last_at[:16]}  {each.turns:>3} {word}  "
        say(head + beginning(redact_text(each.opening), 60))


def show_session(
    session: Session,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """What was said in a session, and which of its turns have no answer.

    \b
    unified-flow sessions show ros
    """
    exchanges, unanswered = _of(session, home)
    if as_json:
        say(json.dumps(redact(_object(session, exchanges, unanswered)), ensure_ascii=False))
    else:
        from unified_flow.turns.sessions.book import markdown

        say(clean(markdown(session, exchanges, unanswered)).rstrip())


def export_session(
    session: Session,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="File to write; else standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    home: options.Home = None,
) -> None:
    """A session as Markdown, with its sources; secrets are redacted.

    \b
    unified-flow sessions export ros -o ros.md
    """
    from unified_flow.cli.saving import save_text
    from unified_flow.turns.sessions.book import markdown

    text = markdown(session, *_of(session, home))
    if to is None:
        say(clean(text).rstrip())
        return
    save_text(to, text, force=force, hint="--force replaces it")
    note(f"wrote {to}")


def delete_session(
    session: Session,
    yes: Yes = False,
    home: options.Home = None,
) -> None:
    """Forget a session: its messages, the folders of its finished turns, what it let tools do.

    A turn that an open intervention needs stays until that is closed. What was typed in a chat
    also stands in shared_state/chat_history, for all sessions together.

    \b
    unified-flow sessions delete ros --yes
    """
    from datetime import UTC, datetime

    from interventions.entry import turns_needed
    from interventions.home import find_home, state_folder
    from interventions.queue import queue_at
    from unified_flow.resume.housekeeping import prunable, prune
    from unified_flow.tools.grants import grants_of

    exchanges, unanswered = _of(session, home)
    count = len(exchanges) + len(unanswered)
    if not yes and not typer.confirm(f"forget {count} turns of {session}?", err=True):
        raise typer.Exit(Code.FAILED)
    book, archive = _stores(home)
    book.forget(session)
    grants_of(find_home(home)).forget_session(session)
    turns, _ = archive.latest(limit=None, session=session)
    own = {turn.turn_id for turn in turns}
    keep = turns_needed(queue_at(home).entries())
    gone = prune(
        archive.folders,
        [n for n in prunable(archive, keep, datetime.now(UTC), newest=True) if n in own],
    )
    note(f"forgotten: {len(exchanges)} answers; {gone} turn folders removed")
    if len(own) > gone:
        note(f"  {len(own) - gone} turns stay: unfinished, or an open intervention needs them")
    history = state_folder(find_home(home)) / HISTORY
    if history.exists():
        note(f"  what was typed in chats is also in {history}; remove it if need be")


def _stores(home: Path | None) -> tuple[SessionBook, TurnArchive]:
    from interventions.home import find_home
    from unified_flow.turns.archive import TurnArchive
    from unified_flow.turns.sessions.book import SessionBook

    place = find_home(home)
    return SessionBook.of(place), TurnArchive.of(place)


def of_session(session: str, home: Path | None) -> tuple[list[Exchange], list[Turn]]:
    """What was answered in it, and its other turns; both empty for one that nobody knows."""
    book, archive = _stores(home)
    exchanges = book.exchanges(session)
    book.close()
    answered = {exchange.turn_id for exchange in exchanges}
    turns, _ = archive.latest(limit=None, session=session)
    return exchanges, [turn for turn in turns if turn.turn_id not in answered]


def _of(session: str, home: Path | None) -> tuple[list[Exchange], list[Turn]]:
    """Ends with exit code 3 for a session of which nothing is known."""
    exchanges, unanswered = of_session(session, home)
    if not exchanges and not unanswered:
        note(f"error: there is no session {session}")
        note("  hint: unified-flow sessions list")
        raise typer.Exit(Code.NOT_FOUND)
    return exchanges, unanswered


def _object(session: str, exchanges: list[Exchange], unanswered: list[Turn]) -> dict[str, object]:
    return {
        "session_id": session,
        "exchanges": [
            {
                "turn_id": each.turn_id,
                "at": each.at,
                "question": each.question,
                "response": each.response,
                "citations": [c.model_dump(mode="json") for c in each.citations],
                "abstained": each.abstained,
            }
            for each in exchanges
        ],
        "unanswered": [
            {"turn_id": turn.turn_id, "status": turn.status, "question": turn.question}
            for turn in sorted(unanswered, key=lambda turn: turn.turn_id)
        ],
    }
