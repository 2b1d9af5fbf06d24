"""Answering a file of questions in one process; a turn that halts does not halt the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from interventions.cli.terminal import Code, note, say
from interventions.plaintext import clean
from unified_flow.cli.documents import refresh_documents
from unified_flow.cli.live import run_turn
from unified_flow.cli.outcome import exit_code, of_refusal, of_turn
from unified_flow.cli.terminal import counted, on_terminal, progress_bar, say_object
from unified_flow.errors import InputError
from unified_flow.turns.input_checks import ONE_QUESTION, first_mistake, new_session_id, read_text

if TYPE_CHECKING:
    from unified_flow.flow import UnifiedFlow


class BatchQuestion(BaseModel):
    """A line of a batch: the question itself, or this as JSON."""

    model_config = ConfigDict(extra="forbid")

    question: str
    id: str | int | None = None
    session_id: str | None = None


def _question(number: int, text: str) -> BatchQuestion:
    """Raises InputError."""
    if not text.startswith("{"):
        return BatchQuestion(question=text)
    try:
        return BatchQuestion.model_validate_json(text)
    except ValidationError as exc:
        raise InputError(
            f"line {number}: {first_mistake(exc)}; a line is a question, or "
            '{"id"?, "question", "session_id"?}',
            field="batch",
        ) from exc


async def answer_all(flow: UnifiedFlow, path: Path, user: str, as_jsonl: bool) -> Code:
    """1 if any line failed, 4 if a failure could not be queued, else 0."""
    numbered = enumerate(read_text(path, "batch").split("\n"), 1)
    lines = [(number, line.strip()) for number, line in numbered if line.strip()]
    flow.services.gate.attended = False
    watched = on_terminal() or (as_jsonl and sys.stderr.isatty())
    codes, waiting = set[Code](), set[str]()
    async with flow:
        refresh_documents(flow, show=watched)
        with progress_bar("answering", show=watched) as progress:
            for done, (number, line) in enumerate(lines, 1):
                outcome, code = await _answer(flow, number, line, user)
                codes.add(code)
                waiting |= {own for own in [outcome.get("intervention_id")] if own}
                _print(outcome, as_jsonl)
                if progress is not None:
                    progress(done, len(lines))
    if waiting and not as_jsonl:
        note(f"{counted(len(waiting), 'intervention')} to look at: interventions list")
    return max(codes, default=Code.DONE)


async def _answer(
    flow: UnifiedFlow, number: int, line: str, user: str
) -> tuple[dict[str, Any], Code]:
    session = new_session_id(ONE_QUESTION)
    head: dict[str, Any] = {"line": number}
    try:
        asked = _question(number, line)
        if asked.id is not None:
            head["id"] = asked.id
        session = asked.session_id or session
        turn, error = await run_turn(flow, session, asked.question, live=False, user=user)
    except InputError as exc:
        return head | of_refusal(exc, session), Code.FAILED
    return head | {"question": turn.question} | of_turn(turn, error), exit_code(turn, error)


def _print(outcome: dict[str, Any], as_jsonl: bool) -> None:
    if as_jsonl:
        say_object(outcome)
        return
    answer = outcome["response"] or f"failed: {outcome.get('message')}"
    if not outcome.get("should_respond", True):
        answer = f"no answer: {outcome['error_message']}"
    say(clean(f"{outcome['line']}. {outcome.get('question', '')}\n{answer}\n"))
