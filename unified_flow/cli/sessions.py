"""`unified-flow sessions`: saved conversations."""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from interventions.cli.terminal import confirm, note, say
from interventions.errors import NotFoundError
from interventions.home import find_home, replace_private
from interventions.plaintext import clean
from interventions.secrets.redaction import WHOLE, redact, redact_for_asker, redact_text
from unified_flow.cli import options
from unified_flow.cli.terminal import beginning, counted, say_list, say_object

if TYPE_CHECKING:
    from unified_flow.turns.archive import TurnArchive
    from unified_flow.turns.sessions.store import Exchange, Sessions
    from unified_flow.turns.turn import Turn

Session = Annotated[str, Argument(help="The session's id; `last` is the one used last.")]


def list_sessions(
    limit: options.Limit = 20,
    everything: Annotated[
        bool, Option("--all", help="Also questions that nobody went on with.")
    ] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """The latest sessions, newest first.

    \b
    unified-flow sessions list --limit 5
    """
    from dataclasses import asdict

    from unified_flow.turns.input_checks import ONE_QUESTION

    book, _ = _stores(home)
    wanted = (
        each
        for each in book.sessions(options.ALL)
        if everything or each.turns > 1 or not each.session_id.startswith(ONE_QUESTION)
    )
    found = list(islice(wanted, limit or None))
    lines = []
    for each in found:
        word = "turn " if each.turns == 1 else "turns"
        head = f"{each.session_id:<24} {each.last_at[:16]}  {each.turns:>3} {word}  "
        lines.append(head + beginning(redact_text(each.opening), 60))
    nothing = "no sessions yet: unified-flow chat, or unified-flow ask '…' --session NAME"
    say_list(as_json, {"sessions": redact([asdict(each) for each in found])}, lines, nothing)


def show_session(
    session: Session, as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """What was said in a session, and which of its turns have no answer.

    \b
    unified-flow sessions show ros
    unified-flow sessions show last --json
    """
    from unified_flow.turns.sessions.transcript import markdown

    session, exchanges, unanswered = _known_session(session, home)
    if as_json:
        say_object(_object(session, exchanges, unanswered))
    else:
        say(markdown(session, exchanges, unanswered).rstrip())


def export_session(
    session: Session,
    output: options.Output = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """A session as Markdown or JSON, without secrets.

    \b
    unified-flow sessions export ros -o ros.md
    unified-flow sessions export last --json --output last.json
    """
    from unified_flow.errors import InputError
    from unified_flow.turns.sessions.transcript import markdown

    found = _known_session(session, home)
    if as_json:
        text = json.dumps(redact(_object(*found), WHOLE), ensure_ascii=False)
    else:
        text = markdown(*found, partial(redact, bounds=WHOLE))
    if output is None:
        say(text.rstrip())
        return
    if output.exists() and not (force and output.is_file()):
        raise InputError(f"{output} is there already", hint="name another; --force replaces a file")
    folder = output.parent.resolve(strict=True)
    replace_private(folder / output.name, clean(text.rstrip()) + "\n")
    note(f"wrote {output}")


def delete_session(
    session: Session,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Delete a session: its messages, turns and grants.

    A turn that an open intervention needs stays until that is closed.

    \b
    unified-flow sessions delete ros --yes
    """
    from interventions.queue import queue_at
    from unified_flow.lib.threads import wait_for
    from unified_flow.resume.retention import delete
    from unified_flow.stores import grant_store

    session, exchanges, unanswered = _known_session(session, home)
    count = len(exchanges) + len(unanswered)
    if not yes:
        confirm(f"delete {counted(count, 'turn')} of {session}")
    book, archive = _stores(home)
    book.forget(session)
    grant_store(find_home(home)).revoke(session_id=session)
    own = {turn.turn_id for turn in _turns_of(archive, session)}
    gone = wait_for(delete(archive.store, sorted(own), queue_at(home).turns_needed))
    if as_json:
        kept = len(own) - gone
        say_object({"session_id": session, "answers": len(exchanges), "turns": gone, "kept": kept})
    note(f"deleted: {counted(len(exchanges), 'answer')}, {counted(gone, 'turn folder')}")
    if len(own) > gone:
        note(f"  kept, as unfinished or needed: {counted(len(own) - gone, 'turn')}")


def _stores(home: Path | None) -> tuple[Sessions, TurnArchive]:
    from unified_flow.stores import session_store, turn_archive

    place = find_home(home)
    return session_store(place), turn_archive(place)


def _turns_of(archive: TurnArchive, session: str | None, limit: int | None = None) -> list[Turn]:
    """Newest first."""
    from unified_flow.lib.threads import wait_for
    from unified_flow.turns.turn_index import TurnQuery

    return wait_for(archive.latest(limit, TurnQuery(session=session)))[0]


def newest_session(home: Path | None) -> tuple[str | None, Turn | None]:
    """The session used last, with its last turn however that ended."""
    book, archive = _stores(home)
    turns = _turns_of(archive, None, limit=1)
    if turns:
        return turns[0].session_id, turns[0]
    with closing(book):  # of turns whose folders were pruned since
        found = book.sessions(limit=1)
    return (found[0].session_id if found else None), None


def session_named(name: str | None, home: Path | None) -> str | None:
    """`last` is the session used last. Raises NotFoundError if there is none yet."""
    if name != options.LAST:
        return name
    newest, _ = newest_session(home)
    if newest is None:
        raise NotFoundError("there is no session yet", hint="unified-flow chat")
    return newest


def _known_session(name: str, home: Path | None) -> tuple[str, list[Exchange], list[Turn]]:
    """What was answered in it, and its other turns. Raises NotFoundError for a session of which
    nothing is known."""
    session = session_named(name, home) or name
    book, archive = _stores(home)
    with closing(book):
        exchanges = book.exchanges(session)
    answered = {exchange.turn_id for exchange in exchanges}
    turns = _turns_of(archive, session)
    unanswered = [turn for turn in turns if turn.turn_id not in answered]
    if not exchanges and not unanswered:
        raise NotFoundError(f"there is no session {session}", hint="unified-flow sessions list")
    return session, exchanges, unanswered


def _object(session: str, exchanges: list[Exchange], unanswered: list[Turn]) -> dict[str, Any]:
    """A session as JSON, for the person who asked."""
    from unified_flow.turns.sources import citation_for_asker

    return {
        "session_id": session,
        "exchanges": [
            vars(each)
            | {
                "question": redact_text(each.question),
                "response": redact_for_asker(each.response),
                "citations": [citation_for_asker(c).model_dump() for c in each.citations],
            }
            for each in exchanges
        ],
        "unanswered": [
            {"turn_id": turn.turn_id, "status": turn.status, "question": redact_text(turn.question)}
            for turn in sorted(unanswered, key=lambda turn: turn.turn_id)
        ],
    }
