"""Where the lines of a chat come from: an editor at a terminal, or a pipe."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.home import open_private
from unified_flow.cli.chat.commands import COMMANDS
from unified_flow.lib.threads import in_daemon_thread

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer


async def piped() -> AsyncGenerator[str, None]:
    """The lines of standard input, whose text need not be all there yet. A read that nobody ends
    keeps the process from ending no longer than Ctrl-C."""
    while line := await in_daemon_thread(sys.stdin.readline):
        yield line


async def edited(history: Path, status: Callable[[], str]) -> AsyncGenerator[str, None]:
    """Lines with editing, history and completion; `status` stands below them.

    Ctrl-C empties the line. `history` keeps what was typed, for the next chat.
    """
    import os

    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    os.close(open_private(history, os.O_WRONLY))
    session: PromptSession[str] = PromptSession(
        "> ",
        history=FileHistory(str(history)),
        completer=_completer(),
        complete_while_typing=True,
        bottom_toolbar=status,
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


def _completer() -> Completer:
    from collections.abc import Iterable

    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class SlashCommands(Completer):
        """After "/" every command, with what it does beside it."""

        def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
            typed = document.text_before_cursor
            if not typed.startswith("/") or " " in typed:
                return
            for command in COMMANDS.values():
                if command.name.startswith(typed[1:]):
                    yield Completion(
                        f"/{command.name}",
                        start_position=-len(typed),
                        display=f"/{command.name} {command.wants}".rstrip(),
                        display_meta=command.help,
                    )

    return SlashCommands()
