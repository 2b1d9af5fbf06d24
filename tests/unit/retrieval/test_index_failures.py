"""An index that cannot be relied on is an error that says what to do, never an empty result."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import forked
from unified_flow.errors import RetrievalError
from unified_flow.lib import text
from unified_flow.retrieval import store
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions

QUESTION = "How long does the dough rest?"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "kitchen"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nLet dough rest {number} hours.\n")
    return folder


@pytest.fixture
def index(tmp_path: Path, docs: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "index") as opened:
        opened.update([docs])
        yield opened


def _truncate_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def _cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _overwrite_the_head(path: Path) -> None:
    path.write_bytes(b"this is no database" * 300)


def _overwrite_all_but_the_head(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))


def _drop_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE chunk")


def _drop_the_full_text_index(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE term")


def _another_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")


def _alter_a_passage(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE chunk SET text = text || ' Not so.'")
        connection.commit()


BROKEN = [
    _truncate_to_nothing, _cut_in_half, _overwrite_the_head, _overwrite_all_but_the_head,
    _drop_a_table, _drop_the_full_text_index, _another_database, _alter_a_passage,
]  # fmt: skip


@pytest.mark.parametrize("breaking", BROKEN)
def test_a_broken_index_is_an_error_and_can_be_built_anew(
    index: Index, docs: Path, breaking: Callable[[Path], None]
) -> None:
    expected = index.search(QUESTION)
    index.close()
    breaking(index.path)

    with pytest.raises(RetrievalError) as caught:
        index.search(QUESTION)
    assert str(index.path) in str(caught.value)
    assert caught.value.hint == f"Build it anew: unified-flow index --rebuild {docs}"
    with pytest.raises(RetrievalError):
        index.check()

    report = index.update([docs], UpdateOptions(rebuild=True))
    assert report.added == 30
    assert index.search(QUESTION) == expected
    index.check()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.rst", "\n\n".join("   " * n + ".. note::" for n in range(400))),
        ("deep.md", "\n".join(f"{'`' * n}{{note}}" for n in range(1_200, 3, -1))),
    ],
)
def test_a_file_nested_too_deeply_is_listed_and_the_others_are_read(
    index: Index, docs: Path, name: str, text: str
) -> None:
    (docs / name).write_text(f"{text}\n")
    (docs / "new.md").write_text("# New\n\nThe oven is hot.\n")
    report = index.update([docs])
    assert [(Path(path).name, why) for path, why in report.skipped] == [(name, "nested too deeply")]
    assert index.search("Is the oven hot?")[0].path.endswith("new.md")


@pytest.mark.parametrize("breaking", BROKEN)
def test_broken_while_it_is_open_it_answers_rightly_or_not_at_all(
    index: Index, docs: Path, breaking: Callable[[Path], None]
) -> None:
    expected = index.search(QUESTION)
    breaking(index.path)

    try:
        assert index.search(QUESTION) == expected  # from what SQLite had in memory
    except RetrievalError as exc:
        assert "--rebuild" in str(exc.hint)  # noqa: PT017 -- either is right
    index.update([docs], UpdateOptions(rebuild=True))
    assert index.search(QUESTION) == expected


@pytest.mark.parametrize("page", range(1, 20))
def test_one_broken_page_never_loses_passages_in_silence(index: Index, page: int) -> None:
    expected = index.search(QUESTION)
    index.close()
    data = index.path.read_bytes()
    start = page * 4096 % len(data)
    index.path.write_bytes(data[:start] + b"\xa5" * 4096 + data[start + 4096 :])

    try:
        found = index.search(QUESTION)
    except RetrievalError:
        return
    assert found == expected


def test_an_index_that_is_not_there(index: Index, docs: Path, tmp_path: Path) -> None:
    with Index.open(tmp_path / "never") as never, pytest.raises(RetrievalError) as caught:
        never.search(QUESTION)
    assert caught.value.hint == "Make one: unified-flow index PATH"
    assert not (tmp_path / "never").exists()

    shutil.rmtree(index.path.parent)
    with pytest.raises(RetrievalError) as caught:
        index.search(QUESTION)
    assert caught.value.hint == f"Make one: unified-flow index {docs}"
    index.update([docs])
    assert index.search(QUESTION)


def test_a_folder_in_place_of_the_index(index: Index) -> None:
    index.close()
    index.path.unlink()
    index.path.mkdir()

    with pytest.raises(RetrievalError, match="cannot be opened"):
        index.search(QUESTION)
    with pytest.raises(RetrievalError, match="cannot be opened"):
        index.update()


def test_an_index_of_another_version_is_built_anew_with_all_its_roots(
    index: Index, docs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.md"
    other.write_text("Ovens are hot.\n")
    index.update([other])
    with closing(sqlite3.connect(index.path)) as connection:
        connection.execute("UPDATE meta SET value = 'older' WHERE key = 'version'")
        connection.commit()

    with pytest.raises(RetrievalError, match="another version") as caught:
        index.search("ovens")
    assert caught.value.hint == f"Build it anew: unified-flow index {other}"

    assert index.update([docs]).chunks == 30
    with Index.open(index.path.parent) as everything:
        assert everything.search("ovens")
        assert everything.counts()[1] == 31


def test_the_version_follows_the_code_that_decides_what_is_stored() -> None:
    first = store.version()
    store.version.cache_clear()
    assert store.version() == first
    assert len(first) == 32
    deciding = {file.name for file in store.deciding_files()}
    assert deciding >= {"store.py", "index_writer.py", "chunk.py", "encoding.py", "markdown.py"}
    assert deciding >= {path.name for path in Path(text.__path__[0]).glob("*.py")}


HOLD_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = " + sys.argv[2])
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO meta VALUES ('held', '1')")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("mode", ["NORMAL", "EXCLUSIVE"])
def test_a_locked_index_says_so_and_who_only_reads_waits_for_no_writer(
    index: Index, docs: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.close()
    (docs / "new.md").write_text("New dough.\n")
    holder = forked.Process(
        [sys.executable, "-c", HOLD_LOCK, str(index.path), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    monkeypatch.setattr(store, "BUSY_TIMEOUT_S", 0.2)
    with holder, Index.open(index.path.parent) as impatient:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(RetrievalError, match="locked by another process") as caught:
            impatient.update([docs])
        assert "--rebuild" not in str(caught.value.hint)
        if mode == "NORMAL":
            assert len(impatient.search("dough", limit=50)) == 30
        else:
            with pytest.raises(RetrievalError, match="locked by another process"):
                impatient.search("dough")
        holder.communicate()
    assert index.update([docs]).added == 1


# A user without rights: imports first, because the interpreter itself may lie in root's home.
UNPRIVILEGED = """
import os, sys, warnings
from pathlib import Path
from unified_flow.retrieval.documents import Documents
from unified_flow.errors import RetrievalError
from unified_flow.retrieval import store
from unified_flow.retrieval.index import Index
from unified_flow.lib.text import language_of, terms
from unified_flow.retrieval.index_update import UpdateOptions
warnings.simplefilter("error")
store.version(), terms("How long does the dough rest?"), "x".encode("cp1252")
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
place = Path(sys.argv[1])
{body}
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Not under tmp_path, which other users cannot enter."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o777)
    (folder / "docs").mkdir(mode=0o755)
    (folder / "docs" / "a.md").write_text("Let the dough rest.\n")
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    shutil.rmtree(folder)


def as_nobody(place: Path, body: str) -> list[str]:
    done = forked.run(
        [sys.executable, "-c", UNPRIVILEGED.format(body=body), str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_files_and_folders_that_may_not_be_read_are_listed(place: Path) -> None:
    (place / "docs" / "closed.md").write_text("Secret dough.\n")
    (place / "docs" / "closed.md").chmod(0)
    (place / "docs" / "folder").mkdir(mode=0o000)

    lines = as_nobody(place, """
index = Index.open(place / "index")
for _ in range(2):
    report = index.update([place / "docs"])
    print(report.files, report.skipped)
print([passage.path for passage in index.search("dough")])
""")  # fmt: skip

    skipped = "(('docs/closed.md', 'permission denied'), ('docs/folder', 'permission denied'))"
    assert lines == [f"1 {skipped}", f"1 {skipped}", "['docs/a.md']"]


def test_a_file_that_may_no_longer_be_read_is_no_longer_quoted(place: Path) -> None:
    lines = as_nobody(place, """
docs = place / "mine"
docs.mkdir()
(docs / "a.md").write_text("Let the dough rest.")
index = Index.open(place / "index")
index.update([docs])
print(len(index.search("dough")))
(docs / "a.md").chmod(0)
report = index.update([docs])
print(report.removed, report.skipped, len(index.search("dough")))
""")  # fmt: skip

    assert lines == ["1", "1 (('mine/a.md', 'permission denied'),) 0"]


def test_an_index_that_may_not_be_read_or_written(place: Path) -> None:
    with Index.open(place / "index") as index:
        index.update([place / "docs"])

    lines = as_nobody(place, """
for folder in ("index", "docs"):
    index = Index.open(place / folder)
    for action in (lambda: index.search("dough"), lambda: index.update([place / "docs"]),
                   lambda: index.update([place / "docs"], UpdateOptions(rebuild=True))):
        try:
            action()
        except RetrievalError as exc:
            print(str(exc).replace(str(place), ""), "|", str(exc.hint).replace(str(place), ""))
""")  # fmt: skip

    may = "Give yourself read and write access to /{0} and what is in it."
    assert [line.partition(" | ")[2] for line in lines] == [
        *[may.format("index")] * 3,
        "Make one: unified-flow index PATH",
        *[may.format("docs")] * 2,
    ]
    assert not (place / "docs" / "documents.sqlite3").exists()


def test_where_nothing_can_be_written_the_index_is_searched_as_it_is(place: Path) -> None:
    with Index.open(place / "index") as index:
        index.update([place / "docs"])
    (place / "index").chmod(0o755)
    (place / "index" / "documents.sqlite3").chmod(0o644)
    (place / "docs" / "a.md").write_text("Let the dough rest and rise.\n")

    lines = as_nobody(place, """
index = Index.open(place / "index")
for roots in ([], [place / "docs"]):
    documents = Documents(index, roots)
    print(documents.index.is_read_only, documents.search("dough")[0].text, documents.fresh)
    documents.close()
index.check()
for trouble in (lambda: index.update(), lambda: Documents(index, [place]).search("dough")):
    try:
        trouble()
    except RetrievalError as exc:
        print(str(exc).replace(str(place), ""))
""")  # fmt: skip

    assert lines[:2] == ["True Let the dough rest. True"] * 2
    assert lines[2].startswith("The document index /index/documents.sqlite3 cannot be opened")
    assert lines[3] == " is not in the document index"


def test_a_reader_that_cannot_write_sees_what_its_owner_has_added(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.open(place / "index") as owner, Index.open(place / "index") as reader:
        owner.update([place / "docs"])
        monkeypatch.setattr(store, "is_writable", lambda path: False)
        assert len(reader.search("dough")) == 1
        (place / "docs" / "b.md").write_text("The dough rises.\n")
        owner.update([place / "docs"])
        assert len(reader.search("dough")) == 2
