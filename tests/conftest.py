"""What every test gets: a home of its own, and no settings or keys from outside."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answers import IN_ENVIRONMENT, turns_here
from tests.servers.fixtures import (
    VARIABLE,
    database_url,
    migrated,
    model_server,
    one_thread,
    postgres,
    postgres_url,
)

__all__ = [
    "database_url",
    "migrated",
    "model_server",
    "one_thread",
    "postgres",
    "postgres_url",
]

# Each worker, and each Python that a test starts, would compile anew all that it loads.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in the background has them ignore Ctrl-C, and all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_memory(folder: str = "/dev/shm", least_bytes: int = 4_000_000_000) -> None:
    """Temporary files and databases of this process, of the workers and of all that they start lie
    in memory where there is room, for on a disk they take a fifth more of the processor."""
    if "TMPDIR" in os.environ or not os.access(folder, os.W_OK | os.X_OK):
        return
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize > least_bytes and not room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = folder


_in_memory()

gc.disable()  # collecting thousands of tests makes no garbage


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that at the end no worker is left alone with one."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: no later collection of garbage looks at it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)  # each app of a terminal makes as much of what is kept as of garbage
    gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("UNIFIED_FLOW_", "OPENAI_", "INTERVENTIONS_")):
            monkeypatch.delenv(name)


@pytest.fixture
def _every_phase_by_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IN_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Of files, or with `answers.both_homes` of files and in a database."""
    place = tmp_path / "home"
    place.mkdir()
    if getattr(request, "param", "files") == "files":
        yield place
    else:
        url = request.getfixturevalue("database_url")
        (place / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
        yield place
        turns_here(url).database.close()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A small folder of real documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "robots.md").write_text(
        "# Robots\n\n## Topics\n\nA topic is a named bus over which nodes exchange messages. "
        "Topics are for continuous data streams such as sensor data.\n\n"
        "## Services\n\nA service is a remote procedure call between two nodes. "
        "Services must return quickly and are not for long-running work.\n\n"
        "## History\n\nThe project was begun in 2007 at the Stanford laboratory by Ada Quist.\n"
    )
    (folder / "cooking.txt").write_text(
        "Bread\n\nBread needs flour, water, salt and yeast. Let the dough rest for twelve hours.\n"
    )
    return folder
