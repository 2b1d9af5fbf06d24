"""`unified-flow index`, and `ask` on a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from pathlib import Path

from tests import forked
from tests.cli.test_ask import run
from tests.office import write_scan
from tests.servers.model_server import refused_url


def test_only_what_is_new_or_changed_is_read(home: Path, docs: Path) -> None:
    first = json.loads(run("index", docs, "--json", home=home).stdout)
    assert (first["files"], first["added"]) == (2, 2)
    (docs / "robots.md").write_text("# Robots\n\nA robot moves.\n")
    (docs / "cooking.txt").unlink()
    (docs / "new.rst").write_text("New\n===\n\nSomething new.\n")
    again = json.loads(run("index", docs, "--json", home=home).stdout)
    assert [again[key] for key in ("added", "changed", "removed", "unchanged")] == [1, 1, 1, 0]
    rebuilt = json.loads(run("index", "--rebuild", docs, "--json", home=home).stdout)
    assert rebuilt["added"] + rebuilt["changed"] == 2


def test_one_file_is_no_files(home: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n\nAnna has the key.\n")
    for command in (["index", tmp_path / "keys.md"], ["collections", "show"], ["doctor"]):
        assert re.search(r"1 file, 1 chunk\b", run(*command, home=home).stdout), command


def test_what_cannot_be_read_is_listed(home: Path, docs: Path) -> None:
    (docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    done = run("index", docs, home=home)
    assert done.returncode == 0
    assert "2 files" in done.stdout
    assert "skipped: " in done.stdout
    assert "/docs/picture.png (binary)" in done.stdout


def test_a_question_over_what_was_indexed_before_needs_no_docs(home: Path, docs: Path) -> None:
    run("index", docs, home=home)
    done = run("ask", "What are topics for?", home=home)
    assert "continuous data streams" in done.stdout


def test_pages_without_text_are_said_wherever_it_matters(home: Path, docs: Path) -> None:
    write_scan(docs / "contract.pdf", 9, "The rent is nine crowns.")
    said = "docs/contract.pdf{}9 of 10 pages hold no text: scanned?"
    indexed = run("index", docs, home=home).stdout
    assert "not read as a whole: " in indexed
    assert f"/{said.format(' (')})" in indexed, "as it can be opened from here"
    assert said.format(": ") in run("collections", "show", home=home).stdout
    assert said.format(": ") in run("doctor", home=home).stdout
    missing = run("ask", "How long is the notice period of the caretaker?", home=home)
    assert said.format(": ") in missing.stdout
    assert said.format(": ") not in run("ask", "What are topics for?", home=home).stdout


def test_ocr_is_a_setting(home: Path, docs: Path, tmp_path: Path) -> None:
    (program := tmp_path / "read.py").write_text("print('The caretaker is Quist.')\n")
    command = f"{sys.executable} {program} {{file}}"
    (home / "unified_flow.toml").write_text(f'[documents]\nocr = "{command}"\n')
    write_scan(docs / "letter.pdf", 1)
    assert "not read" not in run("index", docs, home=home).stdout
    assert "Quist" in run("ask", "Who is the caretaker?", home=home).stdout
    (home / "unified_flow.toml").write_text('[documents]\nocr = "tesseract"\n')
    assert "documents.ocr" in run("index", docs, home=home).stderr


def test_what_may_hold_secrets_is_named_and_read_by_who_means_it(home: Path, docs: Path) -> None:
    (docs / "prod.env").write_text("ZEPPELIN_PORT=4711\n")
    done = run("index", docs, home=home)
    assert "skipped: " in done.stdout
    assert "/docs/prod.env (may hold secrets)" in done.stdout
    assert "index --include PATH" in done.stderr
    run("index", docs, "--include", docs / "prod.env", home=home)
    assert "4711" in run("search", "zeppelin port", home=home).stdout


WEIGHT = "How much does the walrus weigh?"


def test_what_is_indexed_beside_the_settings_is_told_to_be_unasked(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    (home / "unified_flow.toml").write_text(f'docs = ["{docs}"]\n')
    report = tmp_path / "report.rst"
    report.write_text("Extra\n=====\n\nThe walrus weighs 900 kg.\n")
    assert "not asked" not in run("index", docs / "robots.md", home=home).stderr
    for command in (
        ["index", docs, report],
        ["collections", "show"],
        ["search", "walrus"],
        ["ask", WEIGHT],
    ):
        told = run(*command, home=home)
        assert f"docs names other documents: {report}" in told.stderr, command
    run("index", "--delete", report, home=home)
    assert "not asked" not in run("collections", "show", home=home).stderr


def test_a_broken_index_is_a_failure_that_says_how_to_mend_it(home: Path, docs: Path) -> None:
    run("index", docs, home=home)
    index = home / "shared_state/index/documents.sqlite3"
    index.write_bytes(b"garbage " * 2000)
    done = run("ask", "What are topics for?", "--docs", docs, home=home)
    assert done.returncode == 1
    assert "retrieval_error" in done.stderr
    assert "--rebuild" in done.stderr
    assert run("index", "--rebuild", docs, home=home).returncode == 0
    assert run("ask", "What are topics for?", "--docs", docs, home=home).returncode == 0


def test_a_folder_that_is_gone_for_a_moment_costs_nothing_and_is_told(
    home: Path, docs: Path
) -> None:
    run("index", docs, home=home)
    docs.rename(docs.with_name("away"))
    done = run("ask", "What are topics for?", home=home)
    assert done.returncode == 1
    assert "not there any more" in done.stderr
    assert f"index --delete {docs}" in done.stderr.replace("\n", "")
    assert run("search", "topics", home=home).returncode == 1
    assert "2 files" in run("collections", "show", home=home).stdout
    docs.with_name("away").rename(docs)
    resumed = run("resume", 1, home=home)
    assert "continuous data streams" in resumed.stdout
    deleted = run("index", "--delete", docs, home=home)
    assert deleted.stdout.startswith("2 files deleted from the index")
    assert docs.is_dir()
    assert run("ask", "What is 17% of 2300?", home=home).returncode == 0
    again = run("index", "--delete", docs, home=home)
    assert again.returncode == 1
    assert "what is in it: unified-flow collections show" in again.stderr


def _on_a_terminal(*args: str, home: Path) -> str:
    """What a person sees: both streams are one terminal of 100 columns."""
    master, slave = pty.openpty()
    os.set_inheritable(slave, True)
    process = forked.Process(
        [sys.executable, "-m", "unified_flow", *args, "--home", str(home)],
        stdout=slave,
        stderr=slave,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color"},
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # Linux says EIO when the other side has gone
            break
        if not block:
            break
        shown += block
    os.close(master)
    process.wait()
    return shown.decode()


def test_a_person_sees_the_phases_and_then_the_answer(home: Path, docs: Path) -> None:
    shown = _on_a_terminal("ask", "What are topics for?", "--docs", str(docs), home=home)
    for phase in ("query_analyzer", "coordinator", "save"):
        assert phase in shown
    assert shown.rindex("save") < shown.index("continuous data streams")


def test_a_person_sees_the_card(home: Path, docs: Path) -> None:
    served = ("--model", "m", "--base-url", refused_url())
    shown = _on_a_terminal("ask", "What is a topic?", "--docs", str(docs), *served, home=home)
    assert "query_analyzer failed: llm_error, critical" in shown
    assert "interventions show" in shown


def test_a_queue_that_fills_up_is_announced(home: Path, docs: Path) -> None:
    served = ("--model", "m", "--base-url", refused_url())
    questions = home / "q.txt"
    questions.write_text("What is a topic?\n" * 40)
    (home / "unified_flow.toml").write_text("[queue]\nmax_per_error_type = 100\n")
    run("ask", "--batch", questions, "--jsonl", "--docs", docs, *served, home=home)
    done = run("ask", "What are topics for?", "--docs", docs, home=home)
    assert "40 of 50 interventions are open" in done.stderr


def test_a_link_and_its_folder_are_one_place(home: Path, docs: Path) -> None:
    link = docs.parent / "link"
    link.symlink_to(docs)
    assert run("index", link, home=home).returncode == 0
    assert "2 files deleted" in run("index", "--delete", link, home=home).stdout
    assert run("index", docs, home=home).returncode == 0
    assert "2 files deleted" in run("index", "--delete", link, home=home).stdout


def test_an_index_that_failed_is_not_half_known(home: Path, docs: Path, tmp_path: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    for nothing in (empty, refused_url()):
        assert run("index", nothing, "--collection", "other", home=home).returncode == 2
        assert json.loads(run("collections", "list", "--json", home=home).stdout) == {
            "collections": []
        }
    run("index", docs, home=home)
    assert run("index", empty, home=home).returncode == 2
    (known,) = json.loads(run("collections", "list", "--json", home=home).stdout)["collections"]
    assert known["roots"] == [str(docs)]
