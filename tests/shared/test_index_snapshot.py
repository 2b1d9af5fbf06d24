"""The document index of shared mode: published by one, searched by all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unified_flow.cli.app import app
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.retrieval import documents as documents_module
from unified_flow.retrieval.documents import Documents, open_documents
from unified_flow.retrieval.index import Index
from unified_flow.shared.database import Database
from unified_flow.shared.index_snapshot import CHUNK_BYTES, PublishedIndex, Snapshot

runner = CliRunner()


@pytest.fixture
def index(docs: Path, tmp_path: Path) -> Index:
    made = Index.open(tmp_path / "publisher")
    made.update([docs])
    return made


def published(database: Database, folder: Path, version: str = "1") -> PublishedIndex:
    return PublishedIndex(database, folder, "documents", version)


def test_what_is_published_is_found_on_another_machine(
    database: Database, index: Index, docs: Path, tmp_path: Path
) -> None:
    (docs / "large.md").write_text("# Large\n\n" + "\n\n".join(f"w{n}" * 40 for n in range(30_000)))
    index.update()
    snapshot = published(database, tmp_path / "publisher").publish(index.path)
    assert snapshot is not None
    assert snapshot.size_bytes > 2 * CHUNK_BYTES
    copy = published(database, tmp_path / "worker").local_copy()
    assert copy.stat().st_size == snapshot.size_bytes
    assert copy.stat().st_mode & 0o777 == 0o400
    with Index(copy, None) as there:
        assert there.is_read_only
        assert there.search("dough") == index.search("dough")
        there.check()


def test_the_doctor_looks_at_what_is_published(
    shared_home: Path, docs: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "unified_flow.toml").write_text((shared_home / "unified_flow.toml").read_text())
    assert runner.invoke(app, ["index", str(docs), "--home", str(elsewhere)]).exit_code == 0
    for home in (shared_home, elsewhere):
        outcome = runner.invoke(app, ["doctor", "--home", str(home)])
        assert outcome.exit_code == 0, outcome.output
        assert "as published for all workers" in outcome.stdout


def test_the_same_index_is_published_once_and_fetched_once(
    database: Database, index: Index, tmp_path: Path
) -> None:
    publisher = published(database, tmp_path / "publisher")
    assert publisher.publish(index.path) is not None
    assert publisher.publish(index.path) is None
    with ThreadPoolExecutor(4) as workers:
        copies = [
            each.result()
            for each in [
                workers.submit(published(database, tmp_path / "worker").local_copy)
                for _ in range(4)
            ]
        ]
    assert len({(copy, copy.stat().st_ino) for copy in copies}) == 1
    before = copies[0].stat()
    assert published(database, tmp_path / "worker").local_copy().stat() == before


def test_an_index_published_meanwhile_is_what_a_worker_gets(
    database: Database, index: Index, docs: Path, tmp_path: Path
) -> None:
    publisher = published(database, tmp_path / "publisher")
    publisher.publish(index.path)

    class SlowWorker(PublishedIndex):
        def newest(self) -> Snapshot | None:
            found = super().newest()
            (docs / "more.txt").write_text("Something that is new\n")
            index.update()
            publisher.publish(index.path)
            return found

    copy = SlowWorker(database, tmp_path / "worker", "documents", "1").local_copy()
    with Index(copy, None) as there:
        assert there.search("something new")


def test_each_version_of_the_format_has_its_own_and_old_ones_go(
    database: Database, index: Index, docs: Path, tmp_path: Path
) -> None:
    """As in a rolling upgrade: the old workers go on with theirs."""
    old, new = (published(database, tmp_path / name, name) for name in ("old", "new"))
    of_old = old.publish(index.path)
    for number in range(3):
        (docs / "more.txt").write_text(f"More, {number}\n")
        index.update()
        of_new = new.publish(index.path)
    assert old.newest() == of_old
    assert new.newest() == of_new
    with database.connection() as connection:
        assert connection.execute("SELECT count(*) FROM index_snapshots").fetchone() == (2,)
    assert old.local_copy() != new.local_copy()


def test_a_machine_keeps_few_copies(
    database: Database, index: Index, docs: Path, tmp_path: Path
) -> None:
    worker = published(database, tmp_path / "worker")
    for number in range(4):
        (docs / "more.txt").write_text(f"More, {number}\n")
        index.update()
        worker.publish(index.path)
        copy = worker.local_copy()
        os.utime(copy, (number, number))  # a disk may not tell files of one moment apart
    kept = [
        each.name for each in sorted((tmp_path / "worker").iterdir()) if each.suffix == ".sqlite3"
    ]
    assert copy.name in kept
    assert len(kept) == 2


def test_a_snapshot_that_is_damaged_is_not_searched(
    database: Database, index: Index, tmp_path: Path
) -> None:
    worker = published(database, tmp_path / "worker")
    worker.publish(index.path)
    with database.connection() as connection:
        connection.execute("UPDATE index_chunks SET data = substr(data, 2) WHERE number = 0")
    with pytest.raises(RetrievalError, match="not as it was published"):
        worker.local_copy()
    assert list((tmp_path / "worker").glob("*.sqlite3")) == []


def test_a_worker_follows_what_is_published(
    shared_home: Path,
    database: Database,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents_module, "PUBLISHED_FOR_S", 0.0)
    worker = tmp_path / "worker"
    worker.mkdir()
    (worker / "unified_flow.toml").write_text((shared_home / "unified_flow.toml").read_text())
    outcome = runner.invoke(app, ["index", str(docs), "--home", str(shared_home)])
    assert outcome.exit_code == 0, outcome.output
    assert "published for all workers" in outcome.stderr
    searched = open_documents(worker, database=database)
    assert searched.search("dough")[0].path.endswith("cooking.txt")
    assert searched.search("submarine") == []
    (docs / "sea.txt").write_text("A submarine dives in the sea.\n")
    runner.invoke(app, ["index", "--home", str(shared_home)])
    assert searched.search("submarine")[0].path.endswith("sea.txt")
    runner.invoke(app, ["index", "--delete", str(docs), "--home", str(shared_home)])
    assert searched.search("submarine") == []
    words = ["collections", "delete", "documents", "--yes", "--home", str(shared_home)]
    assert runner.invoke(app, words).exit_code == 0
    with pytest.raises(RetrievalError, match="No index of the collection"):
        searched.search("submarine")
    searched.close()


def test_a_machine_without_the_index_withdraws_it(
    shared_home: Path, database: Database, docs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "unified_flow.toml").write_text((shared_home / "unified_flow.toml").read_text())
    assert runner.invoke(app, ["index", str(docs), "--home", str(shared_home)]).exit_code == 0
    words = ["collections", "delete", "documents", "--yes", "--home", str(other)]
    assert runner.invoke(app, words).exit_code == 0
    assert database.row("SELECT count(*) FROM index_snapshots") == (0,)
    refused = runner.invoke(app, words)
    assert refused.exit_code == 2
    assert "there is no collection 'documents'" in refused.stderr


def test_an_index_stays_where_it_cannot_be_withdrawn(
    shared_home: Path, database: Database, docs: Path
) -> None:
    """The command is repeated once the database is back."""
    assert runner.invoke(app, ["index", str(docs), "--home", str(shared_home)]).exit_code == 0
    home = ["--home", str(shared_home)]
    words = ["collections", "delete", "documents", "--yes", *home]
    with database.connect() as session:
        session.execute("ALTER TABLE index_snapshots RENAME TO away")
        assert runner.invoke(app, words).exit_code != 0
        session.execute("ALTER TABLE away RENAME TO index_snapshots")
    assert runner.invoke(app, words).exit_code == 0
    assert "no collections" in runner.invoke(app, ["collections", "list", *home]).stdout


def test_a_worker_without_a_published_index_says_so(shared_home: Path, database: Database) -> None:
    with pytest.raises(Exception, match="no documents are named"):
        open_documents(shared_home, database=database)
    with (shared_home / "unified_flow.toml").open("a") as settings:
        settings.write('\n[collections.documents]\ndocs = ["/not/on/this/machine"]\n')
    searched = open_documents(shared_home, database=database)
    with pytest.raises(RetrievalError, match="No index of the collection") as refused:
        searched.search("dough")
    assert "unified-flow index" in (refused.value.hint or "")


def test_vectors_need_a_store_that_all_workers_can_ask(
    shared_home: Path, database: Database
) -> None:
    with (shared_home / "unified_flow.toml").open("a") as settings:
        settings.write('\n[vectors]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n')
    with pytest.raises(ConfigError) as refused:
        open_documents(shared_home, database=database)
    assert "qdrant_url" in (refused.value.hint or "")


def test_documents_on_one_machine_are_as_they_were(home: Path, docs: Path) -> None:
    documents: Documents = open_documents(home, [docs])
    assert not documents.fresh
    assert documents.search("dough")
    assert documents.fresh
    documents.close()
