"""`unified-flow chat`: the options, the welcome, and the loop over the lines, typed or piped."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Unpack

import typer

from interventions.cli.terminal import Code, note, paint, say_painted
from interventions.errors import QueueError
from interventions.plaintext import one_line
from interventions.secrets.redaction import redact_text
from unified_flow.cli import options
from unified_flow.cli.documents import document_folders, refresh_documents
from unified_flow.cli.exits import report
from unified_flow.cli.sessions import newest_session
from unified_flow.cli.terminal import beginning, on_terminal
from unified_flow.errors import UnifiedFlowError

if TYPE_CHECKING:
    from unified_flow.cli.chat.conversation import Conversation
    from unified_flow.errors import RetrievalError
    from unified_flow.flow import UnifiedFlow
    from unified_flow.turns.turn import Turn


def chat(
    session: options.OwnSession = None,
    last: options.Last = False,
    user: options.User = "default",
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Talk with your documents, and mend failures on the way.

    \b
    unified-flow chat --docs docs/
    unified-flow chat --last
    printf 'What is a topic?\\nAnd a service?\\n' | unified-flow chat --docs docs/

    /help lists the commands of the chat; Ctrl-C stops a turn, Ctrl-D leaves.

    Exit codes: 0, or 1 if the last turn of a chat from a pipe failed.
    """
    import asyncio

    from unified_flow.cli.chat.conversation import Conversation
    from unified_flow.cli.live import note_before_turns
    from unified_flow.cli.permission_question import terminal_asker
    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.flow import UnifiedFlow
    from unified_flow.turns.input_checks import new_session_id

    def open_flow() -> UnifiedFlow:
        return UnifiedFlow.from_config(home, **chosen, asker=terminal_asker())

    flow = open_flow()
    note_before_turns(flow.services)
    session, turn = options.session_or_last(session, last), None
    if session == options.LAST:
        session, turn = newest_session(home)
    conversation = Conversation(
        open_flow, flow, session or new_session_id(), user, home, live=on_terminal(), last=turn
    )
    with logged(flow.services.home):
        code = asyncio.run(_talk(conversation))
    raise typer.Exit(code)


async def _talk(chat: Conversation) -> Code:
    from unified_flow.cli.chat.slash_commands import LeaveChat, show_question

    typed = sys.stdin.isatty() and on_terminal()
    try:
        trouble = refresh_documents(chat.flow, show=chat.live)
        if typed:
            _welcome(chat, trouble)
        if chat.unfinished is not None:
            note(f"not answered yet: {beginning(redact_text(chat.unfinished.question), 80)}")
            if not show_question(chat):
                note(_way_on(chat.unfinished))
        source = _edited() if typed else _piped()
        async with aclosing(source) as lines:
            async for line in lines:
                await _one(chat, line.strip())
    except LeaveChat:
        pass
    finally:
        await chat.flow.aclose()
    return Code.FAILED if not typed and chat.unfinished is not None else Code.DONE


async def _one(chat: Conversation, line: str) -> None:
    """A question or a command. Its errors are reported, and the chat goes on."""
    from unified_flow.cli.chat.slash_commands import names_command, run_command, show_question
    from unified_flow.cli.outcome import show_outcome, understood_as

    if not line:
        return
    try:
        if chat.question is not None and not names_command(line):
            line = f"/retry {line}"
        if line.startswith("/"):
            await run_command(chat, line)
            return
        await chat.ask(line)
        if chat.last is not None and chat.last.status == "interrupted":
            note("interrupted; /retry goes on with it")
        elif chat.last is not None:
            if asked := understood_as(chat.last):
                meaning = f"understood as: {one_line(asked)}"
                say_painted(paint(meaning, "dim")) if chat.live else note(meaning)
            if show_question(chat):
                return
            show_outcome(chat.last, chat.error, chat.home, document_folders(chat.flow))
            if chat.error is not None:
                note(_way_on(chat.last))
    except typer.Exit:
        return  # a command that is shared with the shell has reported its error
    except (UnifiedFlowError, QueueError, OSError) as exc:
        report(exc)


def _way_on(turn: Turn) -> str:
    """What to do next: a tool that was refused has to be allowed, and not mended."""
    if turn.failure is not None and turn.failure.error_type == "ToolDeniedError":
        return "/allow lets it run this once and goes on (/allow session, /allow always); or ask on"
    return "mended? /retry goes on from there; /show has all of it"


def _welcome(chat: Conversation, trouble: RetrievalError | None) -> None:
    services = chat.flow.services
    known = "no documents: name some with --docs"
    if trouble is not None:
        report(trouble)
        known = "documents that cannot be searched"
    elif services.documents is not None:
        known = f"{services.documents.index.counts()[1]} passages"
    note(f"{known} · model {services.settings.model} · session {chat.session}")
    note("ask away; /help lists the commands, Ctrl-D leaves")


async def _piped() -> AsyncGenerator[str, None]:
    """The lines of standard input, whose text need not be all there yet. A read that nobody ends
    keeps the process from ending no longer than Ctrl-C."""
    from unified_flow.lib.threads import in_daemon_thread

    while line := await in_daemon_thread(sys.stdin.readline):
        yield line


async def _edited() -> AsyncGenerator[str, None]:
    """Lines with editing and history, and the commands after "/". Ctrl-C empties the line."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter

    from unified_flow.cli.chat.slash_commands import COMMANDS

    meanings = {f"/{name}": command.help for name, command in COMMANDS.items()}
    session: PromptSession[str] = PromptSession(
        "> ",
        completer=WordCompleter(list(meanings), meta_dict=meanings, sentence=True),
        complete_while_typing=True,
        enable_open_in_editor=True,
    )
    while True:
        try:
            line = await session.prompt_async()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        yield line
