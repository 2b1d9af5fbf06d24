"""The slash commands: one table, from which the help, the completion and the calls come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from interventions.cli.terminal import note, say
from interventions.plaintext import one_line
from unified_flow.cli.chat.conversation import Conversation
from unified_flow.cli.outcome import show_outcome, show_resumed
from unified_flow.tools.grants import SCOPES
from unified_flow.turns.input_checks import new_session_id


class LeaveChat(Exception):  # noqa: N818 - no error: the person has had enough
    pass


@dataclass(frozen=True)
class SlashCommand:
    """`wants` names what may follow, for the help."""

    wants: str
    help: str
    run: Callable[[Conversation, str], Awaitable[None]]


def names_command(line: str) -> bool:
    return line.startswith("/") and line[1:].partition(" ")[0] in COMMANDS


async def run_command(chat: Conversation, line: str) -> None:
    """`/name words`."""
    name, _, words = line[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        note(f"there is no /{one_line(name)}; /help lists the commands")
        return
    await command.run(chat, words.strip())


async def _help(chat: Conversation, words: str) -> None:
    for name, command in COMMANDS.items():
        say(f"  {f'/{name} {command.wants}':<30} {command.help}")
    say("  anything else is a question; Ctrl-C stops a turn, Ctrl-D leaves")


async def _retry(chat: Conversation, words: str) -> None:
    await _go_on(chat, note=words or "retried in the chat", answer=words or None)


async def _allow(chat: Conversation, words: str) -> None:
    if words and words not in SCOPES:
        note(f"say /allow {', /allow '.join(SCOPES)}")
        return
    await _go_on(chat, note="allowed in the chat", grant=words or "once")


async def _go_on(chat: Conversation, **wanted: str | None) -> None:
    if chat.unfinished is None:
        note("there is nothing to retry: the last turn came to its end")
        return
    resumed = await chat.retry(**wanted)
    if resumed is None:
        note("interrupted; /retry goes on with it")
        return
    if not show_question(chat):
        show_resumed(resumed, chat.home)


def show_question(chat: Conversation) -> bool:
    """What a person has to say before the turn goes on, if anything."""
    if chat.question is None:
        return False
    say(chat.question)
    note("the next line is the answer; /new begins anew instead")
    return True


async def _reload(chat: Conversation, words: str) -> None:
    await chat.reload()
    note("settings read again")


async def _show(chat: Conversation, words: str) -> None:
    """The intervention of the last failure, whole."""
    failure = chat.last.failure if chat.last else None
    if chat.last is None or failure is None:
        note("nothing has failed")
    elif failure.intervention_id is None:
        show_outcome(chat.last, chat.error, chat.home)
    else:
        from interventions.cli.entries import show

        show(failure.intervention_id, chat.home)


async def _session(chat: Conversation, words: str) -> None:
    if words:
        chat.session, chat.last, chat.error = words, None, None
    note(f"session {one_line(chat.session)}")


async def _new(chat: Conversation, words: str) -> None:
    await _session(chat, new_session_id())


async def _quit(chat: Conversation, words: str) -> None:
    raise LeaveChat


COMMANDS = {
    "help": SlashCommand("", "this list", _help),
    "retry": SlashCommand("[note]", "mended? let the turn go on from where it failed", _retry),
    "allow": SlashCommand(f"[{'|'.join(SCOPES)}]", "let the refused tool run, and go on", _allow),
    "reload": SlashCommand("", "read the settings again; /retry does so by itself", _reload),
    "show": SlashCommand("", "all that is known of the last failure", _show),
    "session": SlashCommand("[name]", "which session this is, or another one", _session),
    "new": SlashCommand("", "begin a new session", _new),
    "quit": SlashCommand("", "leave; Ctrl-D does too", _quit),
    "exit": SlashCommand("", "the same", _quit),
}
