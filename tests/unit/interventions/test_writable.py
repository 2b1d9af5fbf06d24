"""A folder that takes nothing says why, so that nobody mends what is not broken."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.doctor import examine
from interventions.home import state_folder
from interventions.storage.disk import obstacle


@pytest.fixture
def no_room() -> Iterator[None]:
    """No file of this process gets longer than 10 kB: a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_folder_with_room_is_left_as_it_was(tmp_path: Path) -> None:
    assert obstacle(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_called_one_and_nothing_is_left_on_it(
    queue: InterventionQueue, make, no_room: None
) -> None:
    queue.put(make())
    findings = [finding for finding in examine(queue, mend=True) if not finding.fine]
    assert {finding.todo for finding in findings} == {"make room on its disk"}
    assert all("no space left" in finding.what for finding in findings)
    assert not list(state_folder(queue.home).glob(".room_*"))


def test_a_folder_that_is_not_there_is_no_full_disk(tmp_path: Path) -> None:
    found = obstacle(tmp_path / "gone")
    assert found is not None
    assert "cannot be written: No such file" in str(found)
