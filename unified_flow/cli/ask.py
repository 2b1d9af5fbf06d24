"""`unified-flow ask`: one question, or a file of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from typer import Argument, Option

from interventions.cli.terminal import note, say
from interventions.plaintext import clean
from interventions.secrets.redaction import redact_for_asker
from unified_flow.cli import options
from unified_flow.cli.documents import NAME_DOCUMENTS, document_folders, note_unasked
from unified_flow.cli.exits import refused_as_json
from unified_flow.cli.sessions import session_named
from unified_flow.cli.terminal import on_terminal, say_object

if TYPE_CHECKING:
    from unified_flow.flow import UnifiedFlow
    from unified_flow.phases.errors import PhaseError
    from unified_flow.turns.turn import Turn

MAX_STDIN_CHARS = 1_000_000


def ask(
    question: Annotated[
        str | None, Argument(help="The question; '-' reads it from standard input.")
    ] = None,
    session: options.OwnSession = None,
    last: options.Last = False,
    user: options.User = "default",
    batch: Annotated[
        Path | None,
        Option(
            help="Answer a file ('-': standard input): a question a line, or"
            " {id?, question, session_id?}."
        ),
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print the answer alone.")] = False,
    as_json: options.AsJson = False,
    as_jsonl: options.AsJsonl = False,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Answer a question from your documents, with sources.

    \b
    unified-flow ask "How do topics differ from services?" --docs docs/
    unified-flow ask "And actions?" --docs docs/ --last
    unified-flow ask "…" --model qwen2.5:1.5b --base-url http://127.0.0.1:11434/v1
    unified-flow ask "What is 17% of 2300?"
    unified-flow ask "…" --tools mytools.py --allow-tool 'time.*'
    unified-flow ask --batch questions.txt --jsonl --docs docs/

    Exit codes: 0 answered (also: a question back, an honest "the documents do not say", or
    silence, where a guardrail or the policy wants it), 1 a phase failed and an intervention
    waits, 2 usage or configuration, 4 a phase failed and could not be queued, 130 interrupted.
    """
    machine = as_json or as_jsonl
    with refused_as_json(machine, session):
        if (question is None) == (batch is None):
            raise typer.BadParameter("give a question, or --batch FILE")
        session = options.session_or_last(session, last)
        if session is not None and batch is not None:
            raise typer.BadParameter("a line of a batch names its own session_id")
        if quiet and (machine or batch is not None):
            raise typer.BadParameter("--quiet prints the answer to one question as text")
        if as_json and batch is not None:
            raise typer.BadParameter("a batch prints one object a line: use --jsonl")
        import asyncio

        from unified_flow.cli.live import note_before_turns
        from unified_flow.cli.outcome import exit_code, of_turn, show_outcome
        from unified_flow.cli.permission_question import terminal_asker
        from unified_flow.engine.telemetry.logs import logged
        from unified_flow.flow import UnifiedFlow
        from unified_flow.turns.input_checks import read_text

        named = session_named(session, home)
        asker = None if machine or batch else terminal_asker()
        flow = UnifiedFlow.from_config(home, **chosen, asker=asker)
        if not quiet:
            note_before_turns(flow.services)
        with logged(flow.services.home):
            if batch is not None:
                from unified_flow.cli.batch import answer_all

                code = asyncio.run(answer_all(flow, batch, user, as_jsonl))
            else:
                assert question is not None
                text = (
                    read_text(Path("-"), "query", MAX_STDIN_CHARS) if question == "-" else question
                )
                live = not machine and not quiet and on_terminal()
                begun: list[int] = []
                try:
                    answering = _answer(flow, text, named, user, begun, live=live)
                    turn, error, roots = asyncio.run(answering)
                except KeyboardInterrupt:
                    if begun:
                        note(f"interrupted; to go on: unified-flow resume {begun[0]}")
                    raise
                if machine:
                    say_object(of_turn(turn, error))
                elif quiet and turn.response is not None:
                    say(clean(redact_for_asker(turn.response)))
                else:
                    show_outcome(turn, error, home, roots)
                if turn.abstained and not chosen["docs"] and not quiet:
                    if flow.services.documents is None:
                        note(f"hint: {NAME_DOCUMENTS}")
                    note_unasked(home, chosen["collection"])
                code = exit_code(turn, error)
    raise typer.Exit(code)


async def _answer(
    flow: UnifiedFlow,
    question: str,
    session: str | None,
    user: str,
    begun: list[int],
    *,
    live: bool,
) -> tuple[Turn, PhaseError | None, list[Path]]:
    """`begun` as in `run_turn`; with the documents' folders, for places that can be clicked."""
    from unified_flow.cli.live import run_turn

    async with flow:
        turn, error = await run_turn(flow, session, question, live=live, user=user, begun=begun)
        return turn, error, document_folders(flow)
