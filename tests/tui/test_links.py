"""From one thing to another and back; and the commands, files and editors that an entry offers."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from textual.events import Key, Paste
from textual.keys import _character_to_key as character_to_key
from textual.widgets import Input

from interventions import InterventionQueue
from interventions.entry import short_id
from interventions.home import SETTINGS_FILE
from interventions.retry.contract import LiveTurn, RetryRequest, RetryResult
from monitor.app import Monitor
from tests.tui.scene import paste, put, turn, until
from tests.tui.seen import current, problem, reading, rows, text, told, top, triage

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
SIZE = (100, 30)
STATUSES = {1: "failed", 2: "interrupted", 3: "interrupted", 900: "failed"}


class Program:
    """Reads four turns, the oldest of which is not among the latest; resumes turn 2 only."""

    ids: dict[int, str] = {}  # noqa: RUF012 - the entries of its turns

    def latest(self, home: Path, limit: int) -> list[LiveTurn]:
        return [self.turn(home, number) for number in (3, 2, 1)]

    def turn(self, home: Path, turn_id: int) -> LiveTurn:
        return {
            "turn_id": turn_id,
            "status": STATUSES[turn_id],
            "session_id": "s",
            "question": f"question {turn_id}",
            "ribbon": turn("planner")["ribbon"],
            "intervention_id": self.ids.get(turn_id),
        }

    def changes(self, home: Path, turn_id: int) -> list[str]:
        return ["model small -> large", "configuration"]

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        if request.turn_id == 2:
            return RetryResult(2, "answered", resumed_at="planner")
        return RetryResult(3, "failed", passed=False, phase="planner", message="still broken")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    groups = ("interventions.turns", "interventions.resumers")
    points = [EntryPoint("mine", f"{__name__}:Program", group) for group in groups]

    def found(*, group: str) -> EntryPoints:
        return EntryPoints(point for point in points if point.group == group)

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Program)
    Program.ids.clear()
    return Program.ids


async def test_an_entry_its_turn_the_turns_entry_and_back(
    queue: InterventionQueue, monitor: Make, registered: dict[int, str]
) -> None:
    put(queue, severity="critical")
    first = registered[1] = put(queue, turn_id=1)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("j", "T")
        await until(pilot, lambda: reading(pilot) and "question 1" in text(pilot))
        await pilot.press("E")
        await until(pilot, lambda: triage(pilot).tab.name == "open" and current(pilot) == first)
        assert reading(pilot)
        await pilot.press("L")
        await until(pilot, lambda: triage(pilot).tab.name == "log" and reading(pilot))
        await until(pilot, lambda: f"id: {first}" in text(pilot))
        await pilot.press("E", "escape")
        await until(pilot, lambda: triage(pilot).tab.name == "log" and reading(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: triage(pilot).tab.name == "open" and reading(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: triage(pilot).tab.name == "turns" and reading(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: len(rows(pilot).rows) == 2)
        await until(pilot, lambda: (reading(pilot), current(pilot)) == (False, first))
        assert triage(pilot).model.query.text == ""


async def test_an_old_turn_and_a_closed_entry_are_found(
    queue: InterventionQueue, monitor: Make, registered: dict[int, str]
) -> None:
    own = registered[900] = put(queue, turn_id=900)
    queue.resolve(own, "mended")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: current(pilot) == own)
        await pilot.press("T")
        await until(pilot, lambda: reading(pilot) and "question 900" in text(pilot))
        await pilot.press("E")
        await until(pilot, lambda: triage(pilot).tab.name == "history" and reading(pilot))
        await pilot.press("q")
        await until(pilot, lambda: triage(pilot).tab.name == "turns")
        await pilot.press("1", "T")
        await until(pilot, lambda: "does not apply" in told(pilot))
        assert triage(pilot).tab.name == "open"


async def test_a_link_says_that_escape_goes_back(
    queue: InterventionQueue, monitor: Make, registered: dict[int, str]
) -> None:
    registered[1] = put(queue, turn_id=1)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("T")
        await until(pilot, lambda: "/ turn:1  esc goes back" in text(pilot))
        await pilot.press("r")
        await until(pilot, lambda: "does not apply here; E goes to its entry" in told(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "esc goes back" not in text(pilot))


async def test_what_is_alike(queue: InterventionQueue, monitor: Make) -> None:
    put(queue, severity="critical")
    for number in (1, 2):
        put(queue, error_type="Same", fingerprint="f" * 16, session_id=f"s{number}")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("j", "equals_sign")
        await until(pilot, lambda: len(rows(pilot).rows) == 3)
        await pilot.press("escape")
        await until(pilot, lambda: "▸2" in text(pilot) or len(rows(pilot).rows) > 1)
        assert triage(pilot).model.query.text == ""


async def test_an_interrupted_turn_is_resumed(queue: InterventionQueue, monitor: Make) -> None:
    put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: len(rows(pilot).rows) == 3)
        await pilot.press("j", "t")
        await until(pilot, lambda: "Resume turn 2" in text(pilot))
        assert "turn-2" not in text(pilot)
        assert "-: " not in text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "turn 2 went on from planner and is answered" in told(pilot))
        await pilot.press("k", "t")
        await until(pilot, lambda: "Resume turn 3" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "still broken" in problem(pilot))
        await pilot.press("escape", "c")
        await until(pilot, lambda: "unified-flow resume 3" in text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: "Resume turn 3" in text(pilot))
        await pilot.press("escape", "G", "t")
        await until(pilot, lambda: "does not apply" in told(pilot))
        await until(pilot, lambda: "2 interrupted" in text(pilot))


async def test_what_changed_is_in_the_detail(queue: InterventionQueue, monitor: Make) -> None:
    put(queue, turn_id=1)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "model small -> large" in text(pilot))


async def test_a_command_is_copied_or_done_here(queue: InterventionQueue, monitor: Make) -> None:
    name = short_id(put(queue, turn_id=1))
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("c", "enter")
        await until(pilot, lambda: f"interventions resolve {name}" in pilot.app.clipboard)
        assert f"--home {queue.home}" in pilot.app.clipboard
        await pilot.press("c", "2")
        await until(pilot, lambda: f"interventions retry {name}" in pilot.app.clipboard)
        for steps, then in ((0, "ResolveForm"), (1, "RetryForm"), (4, "ExportForm")):
            await pilot.press("c", *"j" * steps, "x")
            await until(pilot, lambda then=then: top(pilot) == then)  # type: ignore[misc]
            await pilot.press("escape")
        await pilot.press("c", *"j" * 5, "x")
        await until(pilot, lambda: triage(pilot).tab.name == "turns")


async def test_an_export_overwrites_nothing(
    queue: InterventionQueue, monitor: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    severities = {1: "critical", 2: "high"}
    names = [short_id(put(queue, turn_id=n, severity=s)) for n, s in severities.items()]
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("X", "enter")
        await until(pilot, lambda: f"intervention-{names[0]}.json" in told(pilot))
        exported = json.loads((tmp_path / f"intervention-{names[0]}.json").read_text())
        assert exported["intervention"]["turn_id"] == 1
        await pilot.press("X", "enter")
        await until(pilot, lambda: "File exists" in problem(pilot))
        await pilot.press("escape", "ctrl+a", "X", "ctrl+u")
        await paste(pilot, "all.md")
        await pilot.press("enter")
        await until(pilot, lambda: "{id}" in problem(pilot))
        await pilot.press("ctrl+u")
        await paste(pilot, "{id}.md")
        await pilot.press("enter")
        await until(pilot, lambda: all((tmp_path / f"{name}.md").exists() for name in names))
        assert (tmp_path / f"{names[1]}.md").stat().st_mode & 0o777 == 0o600


async def test_files_to_mend(queue: InterventionQueue, monitor: Make) -> None:
    (queue.home / SETTINGS_FILE).write_text("")
    context = {"turn": {**turn("planner"), "recipe": "/no/recipe.md"}}
    put(queue, turn_id=1, context=context, location="/no/source.py:41")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("e")
        await until(pilot, lambda: "/no/source.py:41" in text(pilot))
        assert "3 configuration" in text(pilot)
        await pilot.press("2")
        await until(pilot, lambda: "/no/recipe.md is not on this machine" in told(pilot))


async def test_the_file_that_the_message_names_comes_first(
    queue: InterventionQueue, monitor: Make, tmp_path: Path
) -> None:
    recipe = tmp_path / "planner.md"
    recipe.write_text("broken")
    put(queue, error_message=f"{recipe}:1: a recipe begins with +++", location="/no/source.py:41")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("e")
        await until(pilot, lambda: "1 named file" in text(pilot))
        assert "⏎ or its number chooses" in text(pilot)


async def test_a_form_says_once_what_is_alike_and_else_what_is_not(
    queue: InterventionQueue, monitor: Make
) -> None:
    same = {"error_type": "Same", "fingerprint": "f" * 16, "error_message": "no such thing"}
    for number in (1, 2, 3):
        put(queue, **same, session_id=f"s{number}", turn_id=number)
    put(queue, error_type="Another", turn_id=4, severity="medium")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "session s3, turn 3" in text(pilot))
        box = pilot.app.screen.query_one("#form-entries")
        assert str(box.render()).count("no such thing") == 1
        await pilot.press("escape", "ctrl+a", "r")
        await until(pilot, lambda: "of 2 causes" in text(pilot))
        assert str(pilot.app.screen.query_one("#form-entries").render()).count("Same") == 3


@pytest.mark.parametrize("pasted", ["\r/rtz", "daddy", "undo it: zzz", "/sev:high"])
async def test_what_is_pasted_is_never_a_command(
    queue: InterventionQueue, monitor: Make, pasted: str
) -> None:
    first = put(queue, turn_id=1)
    queue.assign(first, "ada")
    async with monitor().run_test(size=SIZE) as pilot:
        # As from a terminal that does not tell a paste from keys: all within milliseconds, also on
        # a busy machine.
        names = ["enter" if letter == "\r" else character_to_key(letter) for letter in pasted]
        for key in [Key(name, letter) for name, letter in zip(names, pasted, strict=True)]:
            pilot.app.post_message(key)
        await until(pilot, lambda: "pasted text is no command" in told(pilot))
        await pilot.pause(0.2)
        assert top(pilot) == "TriageScreen"
        await pilot.press("escape")
        await until(pilot, lambda: rows(pilot).has_focus)
        pilot.app.post_message(Paste("dy"))
        await pilot.pause()
        await pilot.press("slash")
        await paste(pilot, "is:any")
        await until(pilot, lambda: "/ is:any" in text(pilot))
        assert (queue.find(first)["dismissed_at"], queue.find(first)["owner"]) == (None, "ada")


async def test_a_search_begun_right_after_enter_keeps_the_focus(
    queue: InterventionQueue, monitor: Make
) -> None:
    put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        for key, letter in (("enter", "\r"), ("slash", "/")):
            pilot.app.post_message(Key(key, letter))
        await until(pilot, lambda: isinstance(pilot.app.focused, Input))
        await pilot.pause(0.2)
        assert isinstance(pilot.app.focused, Input)
