"""`unified-flow index --watch`, in a process of its own, over files that really change."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest

from tests import forked
from unified_flow.retrieval.index import Index

PATIENCE_S = 20.0
AS_IT_IS = ["-m", "unified_flow"]
BRISK = """
from unified_flow.cli import index
index.LOOK_S = 0.2
from unified_flow.__main__ import main
main()
"""


class Watching:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: Queue[str] = Queue()
        self.seen: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def until(self, part: str) -> str:
        """The first line from here on that holds `part`."""
        while True:
            self.seen.append(self.lines.get(timeout=PATIENCE_S))
            if part in self.seen[-1]:
                return self.seen[-1]

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_S)


Watch = Callable[..., Watching]


@pytest.fixture
def watch(home: Path) -> Iterator[Watch]:
    started = []

    def start(*paths: Path, how: Sequence[str] = ("-c", BRISK)) -> Watching:
        process = forked.Process(
            [sys.executable, "-u", *how, "index", "--watch", *map(str, paths),
             "--home", str(home)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        started.append(process)
        watching = Watching(process)
        watching.until("Ctrl-C ends it")
        return watching

    yield start
    for process in started:
        process.kill()
        process.communicate()


@contextmanager
def found(home: Path) -> Iterator[Index]:
    with Index.open(home / "shared_state" / "index") as index:
        yield index


def save(path: Path, text: str) -> None:
    """As editors do: another file that takes the place of the first."""
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text)
    beside.replace(path)


def test_what_changes_is_indexed_and_said(home: Path, docs: Path, watch: Watch) -> None:
    watching = watch(docs, how=AS_IT_IS)
    for number in range(30):
        (docs / f"note{number}.md").write_text(f"# Note {number}\n\nThe zeppelin lands.\n")
    watching.until("32 files")
    assert sum("new" in line for line in watching.seen) <= 4  # a burst is not thirty updates
    save(docs / "robots.md", "# Robots\n\nThe gyroscope hums.\n")
    assert "1 changed" in watching.until("changed, 0 removed")
    (docs / "cooking.txt").unlink()
    watching.until("1 removed")
    assert watching.interrupt() == 0
    with found(home) as index:
        assert index.search("gyroscope")[0].path == "docs/robots.md"
        assert index.search("dough") == []


def test_broken_files_do_not_end_it(home: Path, docs: Path, watch: Watch) -> None:
    watching = watch(docs)
    (docs / "broken.docx").write_bytes(b"PK\x03\x04 no more")
    watching.until("skipped: docs/broken.docx")
    (docs / "fine.md").write_text("# Fine\n\nThe zeppelin lands.\n")
    watching.until("1 new")
    assert watching.interrupt() == 0


def test_a_single_file_is_watched(home: Path, docs: Path, watch: Watch) -> None:
    watching = watch(docs / "robots.md")
    save(docs / "robots.md", "# Robots\n\nThe gyroscope hums.\n")
    watching.until("1 changed")
    save(docs / "robots.md", "# Robots\n\nThe gyroscope rests.\n")
    watching.until("1 changed")
    assert watching.interrupt() == 0


def test_a_folder_and_a_file_beside_it_are_watched_together(
    home: Path, docs: Path, tmp_path: Path, watch: Watch
) -> None:
    beside = tmp_path / "elsewhere" / "notes.md"
    (beside.parent / "deep").mkdir(parents=True)
    beside.write_text("# Notes\n\nThe zeppelin lands.\n")
    watching = watch(docs, beside)
    save(beside, "# Notes\n\nThe gyroscope hums.\n")
    watching.until("1 changed")
    save(docs / "robots.md", "# Robots\n\nThe theodolite turns.\n")
    watching.until("1 changed")
    (beside.parent / "deep" / "other.md").write_text("# Other\n\nNobody asked for it.\n")
    beside.write_text("# Notes\n\nThe sextant rests.\n")  # in place, as some editors do
    watching.until("1 changed")
    beside.unlink()
    watching.until("not indexed")
    beside.write_text("# Notes\n\nThe sextant returns.\n")
    watching.until("1 changed")
    assert watching.interrupt() == 0
    with found(home) as index:
        assert index.search("sextant")[0].path == "notes.md"
        assert index.search("theodolite")[0].path == "docs/robots.md"
        assert index.search("nobody") == []


def test_a_folder_that_goes_and_comes_back_is_watched_again(
    home: Path, docs: Path, watch: Watch
) -> None:
    watching = watch(docs)
    docs.rename(docs.with_name("away"))
    watching.until("not indexed")
    docs.mkdir()
    (docs / "new.md").write_text("# New\n\nThe zeppelin lands.\n")
    watching.until("1 new")
    (docs / "more.md").write_text("# More\n\nThe zeppelin departs.\n")
    watching.until("2 files")
    assert watching.interrupt() == 0


def test_a_root_inside_a_folder_of_no_documents_is_watched(
    home: Path, tmp_path: Path, watch: Watch
) -> None:
    root = tmp_path / "node_modules" / "docs"
    root.mkdir(parents=True)
    (root / "x.md").write_text("# X\n\nThe zeppelin lands.\n")
    watching = watch(root)
    save(root / "x.md", "# X\n\nThe gyroscope hums.\n")
    watching.until("1 changed")
    assert watching.interrupt() == 0


def test_what_stays_wrong_is_said_once(home: Path, docs: Path, watch: Watch) -> None:
    beside = docs.with_name("beside")
    beside.mkdir()
    (beside / "a.md").write_text("# A\n\nThe zeppelin lands.\n")
    watching = watch(docs, beside)
    docs.rename(docs.with_name("away"))
    watching.until("not indexed")
    for number in range(3):  # each is a round
        save(beside / "a.md", f"# A\n\nThe zeppelin lands {number} times.\n")
        docs.with_name("touched").write_text(str(number))
    docs.with_name("away").rename(docs)
    watching.until("changed")
    assert sum("not indexed" in line for line in watching.seen) == 1
    docs.rename(docs.with_name("away"))
    watching.until("not indexed")
    assert watching.interrupt() == 0


def test_the_index_inside_the_folder_is_no_change(home: Path, watch: Watch) -> None:
    (home / "notes.md").write_text("# Notes\n\nThe zeppelin lands.\n")
    watching = watch(home)
    save(home / "notes.md", "# Notes\n\nThe zeppelin departs.\n")
    watching.until("1 changed")
    save(home / "notes.md", "# Notes\n\nThe zeppelin returns.\n")
    watching.until("1 changed")
    rounds = [line for line in watching.seen if "files" in line]
    assert len(rounds) == 3
    assert watching.interrupt() == 0
