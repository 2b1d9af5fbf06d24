"""A turn at a terminal: its phases as they happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from interventions.cli.terminal import note
from interventions.errors import QueueError
from interventions.plaintext import clean
from interventions.secrets.redaction import redact_for_asker
from interventions.view.ribbon import took_text
from unified_flow.cli.documents import refresh_documents
from unified_flow.cli.recovery import note_dead_turns
from unified_flow.phases import NAMES
from unified_flow.phases.errors import PhaseError
from unified_flow.stores import missing_worker
from unified_flow.turns.events import (
    Observed,
    PhaseCompleted,
    PhaseFailed,
    PhaseStarted,
    TextArrived,
    ToolStarted,
    TurnResumed,
    TurnStarted,
)
from unified_flow.turns.input_checks import ONE_QUESTION, new_session_id
from unified_flow.turns.ledger import Observer
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.engine.services import Services
    from unified_flow.flow import UnifiedFlow

MARK = {
    "completed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "waiting": ("·", "dim"),
    "kept": ("✓", "dim"),
}

TEXT_LINES = 8  # of what the model is writing
CROWDED = 30

_shown: list[LivePhases] = []


@contextmanager
def paused() -> Iterator[None]:
    """The terminal is free for a question as long as this lasts."""
    view = _shown[-1] if _shown else None
    if view is not None:
        view.pause()
    try:
        yield
    finally:
        if view is not None:
            view.go_on()


class LivePhases:
    """An observer of a turn. Rows appear once it has begun, and stay on the screen when it is
    over."""

    def __init__(self, console: Console) -> None:
        self._status = dict.fromkeys(NAMES, "waiting")
        self._took = dict.fromkeys(NAMES, 0.0)
        self._visits = dict.fromkeys(NAMES, 0)
        self._console = console
        self._doing = ""
        self._text = ""
        self._spinner = Spinner("dots", style="cyan")
        self._live = self._new_live()

    def __enter__(self) -> Self:
        _shown.append(self)
        return self

    def pause(self) -> None:
        """Take the rows away: they come back below the question."""
        self._live.transient = True
        self._live.stop()

    def go_on(self) -> None:
        self._live = self._new_live()  # the old one would go up over the question
        self._live.start(refresh=True)

    def _new_live(self) -> Live:
        return Live(console=self._console, get_renderable=self._view, refresh_per_second=12)

    def __exit__(self, *_: object) -> None:
        _shown.remove(self)
        if self._live.is_started:
            self._live.refresh()
            self._live.stop()

    def __call__(self, event: Observed) -> None:
        self._live.start()
        match event:
            case TurnResumed():
                before = NAMES[: NAMES.index(event.phase)]
                self._status |= dict.fromkeys(before, "kept")
            case PhaseStarted():
                self._status[event.phase] = "running"
                self._visits[event.phase] = event.visit
                self._doing = event.model or ""
            case ToolStarted():
                self._doing = event.tool
            case TextArrived():
                self._text = redact_for_asker(event.text)
            case PhaseCompleted() | PhaseFailed():
                done = "completed" if isinstance(event, PhaseCompleted) else "failed"
                self._status[event.phase] = done
                self._took[event.phase] += event.duration_ms
                self._text = ""

    def _view(self) -> Group:
        """The phases, and below them the end of what the model is writing."""
        lines = Text(clean(self._text), "dim").wrap(self._console, self._console.width)
        return Group(self._table(), *lines[-TEXT_LINES:])

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(min_width=16)
        table.add_column(justify="right", min_width=9)
        table.add_column()
        for name in NAMES:
            status = self._status[name]
            symbol, style = MARK.get(status, ("", "cyan"))
            took = took_text(self._took[name]) if status in {"completed", "failed"} else ""
            again = f"x{self._visits[name]}" if self._visits[name] > 1 else ""
            table.add_row(
                self._spinner if status == "running" else Text(symbol, style),
                Text(name, style if status in {"failed", "waiting", "kept"} else ""),
                Text(took, "dim"),
                Text(self._doing if status == "running" else again, "dim"),
            )
        return table


@contextmanager
def phases_shown(live: bool, observer: Observer | None = None) -> Iterator[Observer]:
    """An observer that shows the phases, where `live`, and passes every event on to `observer`."""
    with LivePhases(Console(stderr=True)) if live else nullcontext() as view:

        def follow(event: Observed) -> None:
            if observer is not None:
                observer(event)
            if view is not None:
                view(event)

        yield follow


async def run_turn(
    flow: UnifiedFlow,
    session: str | None,
    question: str,
    *,
    live: bool,
    user: str = "default",
    again: bool = False,
    begun: list[int] | None = None,
) -> tuple[Turn, PhaseError | None]:
    """The turn as it ended, and the error that halted it. `again` as in `refresh_documents`;
    `begun` gets the turn's number as soon as there is one."""

    def note_number(event: Observed) -> None:
        if isinstance(event, TurnStarted) and begun is not None:
            begun.append(event.turn_id)

    refresh_documents(flow, show=live, again=again)
    before = flow.services.sessions.user_of(session) if session is not None else None
    if before not in (None, user):
        note(f"session {session} is {before}'s; as {user} you go on with what was said in it")
    with phases_shown(live, note_number) as follow:
        try:
            turn = await flow.process(
                session or new_session_id(ONE_QUESTION), question, user_id=user, observer=follow
            )
        except PhaseError as exc:
            return exc.turn, exc
    return turn, None


def note_before_turns(services: Services) -> None:
    """What a person should know before a turn begins."""
    note_dead_turns(services)
    with suppress(QueueError):  # `doctor` says what is wrong with it
        waiting = services.queue.open_count()
        if waiting >= CROWDED:  # a queue that people do not empty is a signal of its own
            most = services.queue.limits.max_size
            note(f"warning: {waiting} of {most} interventions are open: interventions list")
    if waits := missing_worker(services.home):
        note(waits)
    for tool in services.toolbox:
        if not tool.declared and services.gate.decide(tool).verdict == "ask":
            note(
                f"{tool.name} does not say what it touches, so it counts as writing and is asked"
                ' about; if it only reads, put @tool(access="reads") above it'
            )
