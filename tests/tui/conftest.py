"""A monitor without a terminal over a real queue, and a real other process at the same queue."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from interventions import InterventionQueue
from interventions.times import utc_now
from monitor.app import Monitor
from monitor.core.source import Clock, LiveSource
from tests.tui.other_process import OtherProcess


@pytest.fixture(scope="session")
def other() -> Iterator[OtherProcess]:
    process = OtherProcess()
    yield process
    process.close()


@pytest.fixture
def queue(home: Path) -> InterventionQueue:
    return InterventionQueue(home)


@pytest.fixture
def monitor(home: Path) -> Callable[..., Monitor]:
    def make(clock: Clock = utc_now) -> Monitor:
        source = LiveSource(InterventionQueue(home, lock_timeout_s=0.3), clock)
        return Monitor(source, source.read(), clock)

    return make


@pytest.fixture(autouse=True, scope="session")
def _each_style_is_parsed_once() -> Iterator[None]:
    """Textual keeps what it has parsed for as long as an app: as many apps as tests parse alike."""
    parse, parsed = Stylesheet._parse_rules, {}

    def once(sheet: Stylesheet, css: str, **given: Any) -> list[RuleSet]:
        key = (css, *given.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, css, **given)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", once)
        yield


@pytest.fixture(autouse=True)
def _no_blinking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.widgets.Input.cursor_blink", False)


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a monitor freezes is never collected: with it the open files of tests before."""
    monkeypatch.setattr("gc.freeze", lambda: None)


@pytest.fixture(autouse=True)
def _thirty_pictures_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not sixty, for half of a key's work is painting; the long forms measure how quick it is."""
    if not os.environ.get("SOAK"):
        monkeypatch.setattr("textual.screen.UPDATE_PERIOD", 1 / 30)


@pytest.fixture(autouse=True)
def _short_waits_for_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each key Textual's pilot sleeps until the process used no CPU for 20 ms, twice."""
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.005)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", 0.005 / 20)
