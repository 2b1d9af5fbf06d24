"""`unified-flow search` and `collections`, as a person and a script see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_ask import run
from tests.office import write_pdf


def test_a_search_shows_what_counted(home: Path, docs: Path) -> None:
    done = run("search", "Are topics for continuous zebra streams?", "--docs", docs, home=home)
    assert done.returncode == 0
    assert "zebra: in no document" in done.stdout
    assert "too common: Are, for" in done.stdout
    assert "topics (topic): in 1 of" in done.stdout
    assert "docs/robots.md:5  Robots > Topics" in done.stdout
    assert "topic 0." in done.stdout
    assert "no. 1 of FTS5" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_parts_of_a_score_are_the_score(home: Path, docs: Path) -> None:
    done = run("search", "topics and nodes", "--docs", docs, "--json", home=home)
    found = json.loads(done.stdout)
    assert [each["rank"] for each in found["passages"]] == [1, 2]
    for passage in found["passages"]:
        by_terms = sum(passage["parts"].values())
        score = by_terms + passage["heading_adds"] - passage["version_takes"]
        assert score == pytest.approx(passage["score"], abs=1e-5)
        assert passage["proposed"] in (1, 2)
    assert [bool(word["terms"]) for word in found["words"]] == [True, False, True]
    assert found["words"][2]["frequency"] == 2


def test_why_a_file_is_not_there(home: Path, docs: Path) -> None:
    (docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (docs / "topics.md").write_text("# Other\n\nA list of nodes and much else that is long.\n")

    def why(path: str) -> str:
        done = run("search", "topics", "--docs", docs, "--why", path, "--limit", "1", home=home)
        return done.stdout[done.stdout.index("why ") :]

    assert "no chunk of it holds a word" in why("cooking.txt")
    assert "skipped: binary" in why("picture.png")
    assert "no file of this name" in why("nothing.md")
    assert "below that of every passage shown" in why("docs/topics.md")
    assert "among the passages shown" in why(str(docs / "robots.md"))


def test_nothing_found_is_said_and_is_no_failure(home: Path, docs: Path) -> None:
    done = run("search", "xylophone", "--docs", docs, home=home)
    assert done.returncode == 0
    assert "nothing found" in done.stdout


def test_a_page_is_a_place(home: Path, docs: Path) -> None:
    write_pdf(docs / "rover.pdf", [["Cover"], ["The gyroscope of the rover hums at night."]])
    done = run("search", "gyroscope", "--docs", docs, "--json", home=home)
    (passage,) = json.loads(done.stdout)["passages"]
    assert (passage["source"], passage["page"]) == ("docs/rover.pdf:p2", 2)
    answer = run("ask", "What does the gyroscope do?", "--docs", docs, "--json", home=home)
    assert json.loads(answer.stdout)["citations"][0]["source"] == "docs/rover.pdf:p2"


@pytest.mark.parametrize("name", ["Annual Report (Final) 2024.pdf", "B7.pdf"])
def test_an_answer_may_cite_any_name(name: str, home: Path, docs: Path) -> None:
    write_pdf(docs / name, [["Cover"], ["The gyroscope of the rover hums at night."]])
    answer = run("ask", "What does the gyroscope do?", "--docs", docs, "--json", home=home)
    assert json.loads(answer.stdout)["citations"][0]["source"] == f"docs/{name}:p2"


def test_stats_count_what_there_is(home: Path, docs: Path) -> None:
    (docs / ".env").write_text("KEY=1\n")
    (docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    run("index", docs, home=home)
    found = json.loads(run("collections", "show", "--json", home=home).stdout)
    assert (found["files"], found["languages"]) == (2, {"en": 2})
    assert found["formats"] == {".md": 1, ".txt": 1}
    assert found["skipped"] == {"may hold secrets": 1, "binary": 1}
    assert found["largest"][0]["path"] == "docs/robots.md"
    assert found["size_bytes"] > 4096
    shown = run("collections", "show", home=home).stdout
    assert "collection documents: 2 files" in shown
    assert "1: may hold secrets" in shown
    assert run("collections", "show", "--rebuild", home=home).returncode == 2


def test_collections_are_apart(home: Path, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "manuals"
    other.mkdir()
    (other / "pump.md").write_text("# Pump\n\nThe pump of the fountain is oiled in spring.\n")
    run("index", docs, home=home)
    run("index", other, "--collection", "manuals", home=home)

    def sources(*options: str) -> list[str]:
        done = run("search", "fountain pump topics", "--json", *options, home=home)
        return [each["path"] for each in json.loads(done.stdout)["passages"]]

    assert sources() == ["docs/robots.md"]
    assert sources("--collection", "manuals") == ["manuals/pump.md"]
    answer = run("ask", "When is the pump oiled?", "--collection", "manuals", home=home)
    assert "manuals/pump.md:3" in answer.stdout

    listed = json.loads(run("collections", "list", "--json", home=home).stdout)["collections"]
    assert [(each["name"], each["files"]) for each in listed] == [("documents", 2), ("manuals", 1)]
    assert "manuals" in run("collections", "list", home=home).stdout

    assert run("collections", "delete", "manuals", "--yes", home=home).returncode == 0
    assert (other / "pump.md").exists()
    gone = run("search", "pump", "--collection", "manuls", home=home)
    assert gone.returncode == 2
    assert "no collection 'manuls'" in gone.stderr
    assert "unified-flow index PATH --collection manuls" in gone.stderr


def test_the_settings_say_what_belongs_to_a_collection(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "home" / "manuals"
    other.mkdir()
    (other / "pump.md").write_text("# Pump\n\nThe pump of the fountain is oiled in spring.\n")
    (home / "unified_flow.toml").write_text(
        f'docs = ["{docs}"]\ncollection = "manuals"\n[collections.manuals]\ndocs = ["manuals"]\n'
    )
    assert "manuals/pump.md" in run("ask", "When is the pump oiled?", home=home).stdout
    done = run("search", "topics", "--collection", "documents", "--json", home=home)
    assert json.loads(done.stdout)["passages"][0]["path"] == "docs/robots.md"
    assert run("search", "topics", "--collection", "other", home=home).returncode == 2


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 80])
def test_a_collection_is_no_path(name: str, home: Path, docs: Path) -> None:
    done = run("index", docs, "--collection", name, home=home)
    assert done.returncode == 2
    assert "collection" in done.stderr
