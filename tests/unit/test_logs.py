"""The log of a program: each line once, and never more than two files."""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path

import pytest

from unified_flow.engine.telemetry import logs


def test_each_line_is_written_once_and_only_while_it_is_wanted(home: Path) -> None:
    logger = logging.getLogger("unified_flow.walk")
    with logs.logged(home):
        with logs.logged(home):
            logger.warning("inner")
        logger.warning("outer\nand more")
        logger.info("of no interest")
    logger.warning("after")
    lines = (home / "logs" / "flow.log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        "WARNING unified_flow.walk inner",
        "WARNING unified_flow.walk outer and more",
    ]


def test_a_full_file_makes_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 1000)
    with logs.logged(home):
        for number in range(100):
            logging.getLogger("unified_flow.walk").warning("line %d, password=hunter2", number)
    kept = sorted((home / "logs").glob("flow*"))
    assert [path.name for path in kept] == ["flow.log", "flow.log.1"]
    assert all(path.stat().st_size < 1100 for path in kept)
    text = "".join(path.read_text() for path in reversed(kept))
    assert "line 99," in text
    assert text.count("\n") == len([line for line in text.splitlines() if line])
    assert "hunter2" not in text


def test_a_disk_that_is_full_keeps_nobody_from_going_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its own file takes the line, nor stderr, which is often a file beside it."""
    (home / "logs").write_text("no folder")
    full = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115 - to close it is an error, too
    monkeypatch.setattr(sys, "stderr", full)
    with logs.logged(home):
        logging.getLogger("unified_flow").error("once")
    with pytest.raises(OSError, match="No space left"):
        full.close()


def test_a_line_that_finds_no_room_is_lost_and_counted() -> None:
    reading, writing = os.pipe()
    lost: list[int] = []
    writer = logs.LineWriter(writing, lambda: lost.append(1), most=2)
    sent = [f"{number} {'x' * 100_000}" for number in range(5)]  # a pipe holds less than one
    for line in sent:
        writer.put(line)
    closing = threading.Thread(target=writer.close)
    closing.start()
    with os.fdopen(reading) as lines:
        read = [lines.readline().rstrip("\n") for _ in range(len(sent) - len(lost))]
    closing.join()
    os.close(writing)
    assert 2 <= len(lost) <= 3  # one may be under way
    assert read == [line for line in sent if line in read]
