"""The card that ends a failed turn: what broke, where, and the commands to go on."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from interventions.entry import short_id
from interventions.plaintext import clean
from unified_flow.cli.screen import beginning
from unified_flow.engine.failure_report import ribbon
from unified_flow.errors import HumanNeededError, ToolDeniedError
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.turn import Turn

SYMBOL = {"completed": "✓", "failed": "✗", "running": "…", "not_run": "·"}
MESSAGE_CHARS = 600


def show_card(
    console: Console, turn: Turn, error: PhaseError, home_flag: str, known: Sequence[str] = ()
) -> None:
    """`home_flag` is what the commands need to find the same home (" --home …" or "").

    `known` says what helped when the same failure was resolved before.
    """
    what = clean(f"{error.phase} failed: {error.category}, {error.severity}")
    cause = error.__cause__
    body = Text()
    body.append(" ".join(SYMBOL[step["status"]] for step in ribbon(turn, failed=error.phase)))
    body.append(f"   turn {error.turn_id}, request {clean(error.request_id)}\n\n", "dim")
    body.append(beginning(str(error), MESSAGE_CHARS), "bold")
    if cause is not None and turn.failure is not None and turn.failure.tool:
        body.append(f"\ntool: {clean(turn.failure.tool)}")
    if error.hint:
        body.append("\nhint: ", "dim").append(clean(error.hint))
    for fix in known:
        body.append("\nresolved before: ", "dim").append(beginning(fix, MESSAGE_CHARS))
    steps = Text("\n").join([Text("Next:", "dim"), *_next(error, home_flag)])
    if console.is_terminal:
        console.print(Panel(Group(body, Text(), steps), title=what, border_style="red"))
    else:
        console.print(Group(Text(what), body, steps), soft_wrap=True)


def _next(error: PhaseError, home_flag: str) -> list[Text]:
    if error.intervention_id is None:
        where = Text(
            f"  nobody was told (the queue: {error.admission}); see logs/errors/emergency_*"
        )
        return [where, Text(f"  unified-flow turns show {error.turn_id}{home_flag}", "cyan")]
    short = short_id(error.intervention_id)
    commands = [
        f"  interventions show {short}{home_flag}",
        f"  unified-flow turns show {error.turn_id}{home_flag}",
        f"  interventions resolve {short} {_mended(error)}{home_flag}",
    ]
    return [Text(command, "cyan") for command in commands]


def _mended(error: PhaseError) -> str:
    """How the intervention is resolved: by a fix, by an answer, or by leave to run."""
    if isinstance(error.__cause__, HumanNeededError):
        return '--note "the answer" --retry'
    if isinstance(error.__cause__, ToolDeniedError):
        return '--note "it may run" --retry --grant once'
    return '--note "what you mended" --retry'
