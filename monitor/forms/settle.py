"""A call that may have had its effect: run it again, count it as done, or leave the turn."""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from interventions.retry.contract import BegunCall, Settled
from interventions.secrets.redaction import redact
from interventions.view.plaintext import one_line
from monitor.keys import key
from monitor.widgets.key_bar import KeyBar

if TYPE_CHECKING:
    from monitor.app import Monitor

_ARGS_SHOWN = 400
_LOOK_S = 0.2


class SettleForm(ModalScreen[Settled]):
    """The focus is on leaving it, which changes nothing."""

    AUTO_FOCUS = "#leave"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,l", "answer('leave')", "Leave", "As it is", id="settle.leave", show=True),
        key("a", "answer('again')", "Run again", "Let it run", id="settle.again", show=True),
        key("d", "answer('done')", "It is done", "Count it", id="settle.done", show=True),
    ]

    def __init__(self, call: BegunCall) -> None:
        super().__init__()
        self._call = call

    def compose(self) -> ComposeResult:
        call = self._call
        args = json.dumps(redact(dict(call.args)), ensure_ascii=False)
        shown = args if len(args) <= _ARGS_SHOWN else args[: _ARGS_SHOWN - 1] + "…"
        why = (
            "it had begun and not finished when the turn stopped;\n"
            "whether it wrote is unknown: look whether the effect is there"
            if call.unfinished
            else "it has written, and would be called again"
        )
        with Vertical(id="form", classes="box") as box:
            box.border_title = f"Turn {call.turn_id}"
            yield Static(
                f"it called {one_line(call.tool)} with {one_line(shown)}\n{why}", markup=False
            )
            with Horizontal(id="form-buttons"):
                yield Button("Leave the turn", id="leave", compact=True)
                yield Button("Run it again", id="again", compact=True)
                if call.unfinished:
                    yield Button("Count it as done", id="done", compact=True)
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "answer" or parameters != ("done",) or self._call.unfinished

    def action_answer(self, said: Settled) -> None:
        self.dismiss(said)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        answers: dict[str, Settled] = {"again": "again", "done": "done"}
        self.dismiss(answers.get(event.button.id or "", "leave"))


def ask_in(app: Monitor, call: BegunCall) -> Settled:
    """From the thread of a retry: waits for the person. A monitor that was left leaves the turn."""
    said: Future[Settled | None] = Future()
    try:
        app.call_from_thread(app.push_screen, SettleForm(call), said.set_result)
    except RuntimeError:
        return "leave"
    while app.is_running:
        try:
            return said.result(timeout=_LOOK_S) or "leave"
        except TimeoutError:
            continue
    return "leave"
