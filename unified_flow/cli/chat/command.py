"""`unified-flow chat` itself: the options, the welcome, and the loop over the lines."""

from __future__ import annotations

import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from interventions.cli.terminal import Code, note
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.chat import HISTORY
from unified_flow.cli.completing import session_ids
from unified_flow.cli.screen import counted, on_terminal

if TYPE_CHECKING:
    from unified_flow.cli.chat.conversation import Conversation
    from unified_flow.errors import RetrievalError
    from unified_flow.flow import UnifiedFlow
    from unified_flow.turns.turn import Turn


def chat(
    session: Annotated[
        str | None,
        typer.Option(
            help="Go on with this session, or name a new one.", autocompletion=session_ids
        ),
    ] = None,
    latest: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the session used last.")
    ] = False,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Talk with your documents; a failure is met, mended and retried inside the chat.

    \b
    unified-flow chat --docs docs/
    unified-flow chat --continue
    printf 'What is a topic?\\nAnd a service?\\n' | unified-flow chat --docs docs/

    /help lists the commands of the chat; Ctrl-C stops a turn, Ctrl-D leaves.

    Exit codes: 0, or 1 if the last turn of a chat from a pipe failed.
    """
    import asyncio

    from unified_flow.cli.chat.conversation import Conversation
    from unified_flow.cli.permission import terminal_asker
    from unified_flow.cli.running import new_session_id
    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.flow import UnifiedFlow

    if session is not None and latest:
        raise typer.BadParameter("give --session or --continue")

    def open_flow() -> UnifiedFlow:
        return UnifiedFlow.from_config(
            home,
            **chosen,
            asker=terminal_asker(),
        )

    flow = open_flow()
    last = None
    if latest:
        session, last = _latest(flow.services.home)
    conversation = Conversation(
        open_flow, flow, session or new_session_id(), home, live=on_terminal(), last=last
    )
    with logged(flow.services.home):
        code = asyncio.run(_talk(conversation))
    raise typer.Exit(code)


def _latest(home: Path) -> tuple[str | None, Turn | None]:
    """The session used last, with its last turn however that ended: /retry goes on with it."""
    from unified_flow.turns.archive import TurnArchive
    from unified_flow.turns.sessions.book import SessionBook

    turns, _ = TurnArchive.of(home).latest(limit=1, session=None)
    if turns:
        return turns[0].session_id, turns[0]
    book = SessionBook.of(home)  # of turns whose folders were pruned since
    try:
        found = book.sessions(limit=1)
    finally:
        book.close()
    return (found[0].session_id if found else None), None


async def _talk(chat: Conversation) -> Code:
    from interventions.home import state_folder
    from interventions.secrets.redaction import redact_text
    from unified_flow.cli.chat.commands import LeaveChat
    from unified_flow.cli.chat.lines import edited, piped
    from unified_flow.cli.running import refresh_documents
    from unified_flow.cli.screen import beginning

    typed = sys.stdin.isatty() and on_terminal()
    try:
        trouble = refresh_documents(chat.flow, show=chat.live)
        if typed:
            _welcome(chat, trouble)
        if chat.unfinished is not None:
            note(f"not answered yet: {beginning(redact_text(chat.unfinished.question), 80)}")
            note(_way_on(chat.unfinished))
        history = state_folder(chat.flow.services.home) / HISTORY
        source = edited(history, lambda: _status(chat)) if typed else piped()
        async with aclosing(source) as lines:
            async for line in lines:
                await _one(chat, line.strip())
    except LeaveChat:
        pass
    finally:
        await chat.flow.aclose()
    return Code.FAILED if not typed and chat.unfinished is not None else Code.DONE


async def _one(chat: Conversation, line: str) -> None:
    """A question or a command. What is wrong with it is said, and the chat goes on."""
    from interventions.errors import QueueError
    from unified_flow.cli.answer import show_outcome
    from unified_flow.cli.chat.commands import run_command
    from unified_flow.errors import UnifiedFlowError

    if not line:
        return
    try:
        if line.startswith("/"):
            await run_command(chat, line)
            return
        await chat.ask(line)
        if chat.last is not None and chat.last.status == "interrupted":
            note("interrupted; /retry goes on with it")
        elif chat.last is not None:
            show_outcome(chat.last, chat.error, chat.home)
            if chat.error is not None:
                note(_way_on(chat.last))
    except typer.Exit:
        return  # a command that is shared with the shell has said what was wrong
    except (UnifiedFlowError, QueueError, OSError) as exc:
        _say_error(exc)


def _say_error(exc: Exception) -> None:
    note(f"error: {one_line(str(exc))}")
    if hint := getattr(exc, "hint", None):
        note(f"  hint: {one_line(hint)}")


def _way_on(turn: Turn) -> str:
    """What to do next: a tool that was refused has to be allowed, and not mended."""
    if _was_refused(turn):
        return "/allow lets it run this once and goes on (/allow session, /allow always); or ask on"
    return "mended? /retry goes on from there; /show tells all"


def _was_refused(turn: Turn) -> bool:
    return turn.failure is not None and turn.failure.error_type == "ToolDeniedError"


def _welcome(chat: Conversation, trouble: RetrievalError | None) -> None:
    services = chat.flow.services
    known = "no documents: name some with --docs"
    if trouble is not None:
        _say_error(trouble)
        known = "documents that cannot be searched"
    elif services.documents is not None:
        known = f"{services.documents.index.size()} passages"
    note(f"{known} · model {services.settings.model} · session {chat.session}")
    note("ask away; /help lists the commands, Ctrl-D leaves")


def _status(chat: Conversation) -> str:
    """Below the line that is being typed."""
    from interventions.errors import QueueError

    try:
        waiting = chat.flow.services.queue.open_count()
    except QueueError:
        return f" {chat.session} · the queue cannot be read: interventions doctor"
    turn = chat.unfinished
    way_on = "/allow" if turn is not None and _was_refused(turn) else "/retry"
    failed = f" · the last turn failed: {way_on}" if turn is not None else ""
    news = f" · {counted(waiting, 'open intervention')}" if waiting else ""
    return f" {chat.session}{news}{failed}"
