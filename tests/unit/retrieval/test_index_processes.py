"""Several processes on one index, and one that is killed in the middle."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from unified_flow.errors import RetrievalError
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions

UPDATE = """
import sys
from pathlib import Path
from unified_flow.retrieval.index import Index

def progress(done, total):
    if done in (1, int(sys.argv[3])):
        print(done, flush=True)
        if len(sys.argv) > 4:
            sys.stdin.read()

report = Index.open(Path(sys.argv[1])).update([sys.argv[2]], progress=progress)
print(report.added, report.changed, report.removed, report.chunks)
"""


def start(index: Path, docs: Path, stop_at: int, *more: str) -> subprocess.Popen[str]:
    return forked.Process(
        [sys.executable, "-c", UPDATE, str(index), str(docs), str(stop_at), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def write(docs: Path, files: int, text: str) -> None:
    docs.mkdir(exist_ok=True)
    for number in range(files):
        (docs / f"{number}.md").write_text(f"# Page {number}\n\n{text} {number}\n")


def test_killed_in_the_middle_the_old_index_stays_whole(tmp_path: Path) -> None:
    docs, folder = tmp_path / "docs", tmp_path / "index"
    write(docs, 120, "Let the dough rest. " * 40)
    with Index.open(folder) as index:
        index.update([docs])
        before = index.search("page 7 dough", 50)
    write(docs, 120, "All is about tea now. " * 800)  # more than SQLite keeps in memory

    for stop_at in (1, 100):
        with start(folder, docs, stop_at) as child:
            assert child.stdout is not None
            while int(child.stdout.readline()) != stop_at:
                pass
            child.send_signal(signal.SIGKILL)
        assert child.returncode == -signal.SIGKILL
        with Index.open(folder) as index:
            index.check()
            assert index.search("page 7 dough", 50) == before
            assert index.search("tea") == []

    with Index.open(folder) as index:
        report = index.update([docs])
        assert (report.changed, report.removed) == (120, 0)
        assert index.search("dough") == []
        assert index.search("tea")
        index.check()


def test_killed_while_it_is_made_it_is_made_by_the_next(tmp_path: Path) -> None:
    docs, folder = tmp_path / "docs", tmp_path / "index"
    write(docs, 20, "Let the dough rest.")
    with start(folder, docs, 10, "wait") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        child.kill()
    assert child.returncode == -signal.SIGKILL

    with Index.open(folder) as index:
        assert index.update([docs]).added == 20
        assert index.search("dough")


def test_two_processes_may_index_at_once(tmp_path: Path) -> None:
    docs, folder = tmp_path / "docs", tmp_path / "index"
    write(docs, 60, "Let the dough rest.")
    first = start(folder, docs, 30, "wait")
    assert first.stdout is not None
    assert first.stdout.readline() == "1\n"  # holds the writer's place until stdin closes
    second = start(folder, docs, 30)

    assert first.stdin is not None
    first.stdin.close()
    outputs = [each.stdout.read().splitlines()[-1] for each in (first, second) if each.stdout]
    codes = [each.wait() for each in (first, second)]
    for each in (first, second):
        assert each.stdout is not None
        each.stdout.close()
    assert second.stdin is not None
    second.stdin.close()

    assert codes == [0, 0]
    assert outputs == ["60 0 0 60", "0 0 0 60"]
    with Index.open(folder) as index:
        assert index.counts()[1] == 60
        index.check()


def test_who_has_it_open_sees_what_another_process_did(tmp_path: Path) -> None:
    docs, folder = tmp_path / "docs", tmp_path / "index"
    write(docs, 5, "Let the dough rest.")
    with Index.open(folder) as index, Index.open(folder) as other:
        index.update([docs])
        assert other.counts()[1] == 5
        write(docs, 9, "All is about tea now.")
        index.update([docs])
        assert other.search("dough") == []
        assert other.counts()[1] == 9
        index.update([docs], UpdateOptions(rebuild=True))
        assert len(other.search("tea", 20)) == 9
        index.path.write_bytes(b"broken")
        index.update([docs], UpdateOptions(rebuild=True))  # another file of the same name
        assert len(other.search("tea", 20)) == 9


def test_what_processes_read_is_what_one_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    write(docs, 60, "Let the dough rest in the cool cellar for 3.5 hours.")
    (docs / "table.csv").write_text("a;b\n1;2\n")
    (docs / "image.svg").write_text("<svg/>")
    found = []
    for worthwhile in (1, 1000):
        monkeypatch.setattr("unified_flow.retrieval.file_reading._WORTHWHILE", worthwhile)
        monkeypatch.setattr("os.cpu_count", lambda: 3)
        with Index.open(tmp_path / str(worthwhile)) as index:
            report = index.update([docs])
            passages = index.search("page 7 dough", 100)
            with index.reading() as reader:
                found.append((report.added, report.skipped, passages, reader.languages))

    assert found[0] == found[1]
    assert found[0][0] == 61


def test_a_reading_process_that_ends_leaves_the_old_index_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    write(docs, 3, "Let the dough rest.")
    with Index.open(tmp_path / "index") as index:
        index.update([docs])
        before = index.search("dough")
        write(docs, 60, "All is about tea now.")
        monkeypatch.setattr("unified_flow.retrieval.file_reading._WORTHWHILE", 1)
        monkeypatch.setattr("os.cpu_count", lambda: 2)
        monkeypatch.setattr("sys.executable", "/bin/true")
        with pytest.raises(RetrievalError, match="a process that read documents has ended"):
            index.update([docs])

        assert index.search("dough") == before
        assert index.search("tea") == []
