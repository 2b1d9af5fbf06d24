"""What a search finds after the files were written, changed, moved and deleted."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from unified_flow.errors import InputError, RetrievalError
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions

BREAD = (
    "# Bread\n\nBread needs flour, water, salt and yeast. Let the dough rest for twelve hours.\n"
)
TEA = "# Tea\n\nGreen tea is steeped for two minutes in water of eighty degrees.\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "kitchen"
    folder.mkdir()
    (folder / "bread.md").write_text(BREAD)
    (folder / "tea.md").write_text(TEA)
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "state" / "index") as opened:
        yield opened


def paths(index: Index, query: str) -> list[str]:
    return [passage.path for passage in index.search(query)]


def test_a_passage_says_where_it_stands(index: Index, docs: Path) -> None:
    index.update([docs])

    (passage,) = index.search("How long does the dough rest?")

    assert (passage.path, passage.line, passage.end_line) == ("kitchen/bread.md", 3, 3)
    assert passage.heading == "Bread"
    assert passage.text == BREAD.splitlines()[2]
    assert 0 < passage.score < 1
    assert index.search("How long does the dough rest?") == [passage]


def test_only_what_changed_is_read_again(index: Index, docs: Path) -> None:
    first = index.update([docs])
    assert (first.added, first.changed, first.removed, first.unchanged) == (2, 0, 0, 0)

    (docs / "bread.md").write_text(BREAD.replace("twelve", "eleven"))
    (docs / "soup.md").write_text("# Soup\n\nSoup is made of leeks.\n")
    os.utime(docs / "tea.md", (1, 1))  # touched, not changed
    second = index.update([docs])
    assert (second.added, second.changed, second.removed, second.unchanged) == (1, 1, 0, 1)
    assert (second.files, second.chunks) == (3, 3)
    assert "eleven" in index.search("dough")[0].text

    (docs / "tea.md").unlink()
    third = index.update([docs])
    assert (third.added, third.changed, third.removed, third.unchanged) == (0, 0, 1, 2)
    assert index.search("green tea") == []


def test_a_change_in_the_same_moment_with_the_same_size_is_seen(index: Index, docs: Path) -> None:
    for word in ("eleven", "twenty", "ninety"):
        (docs / "bread.md").write_text(BREAD.replace("twelve", word))
        before = (docs / "bread.md").stat()
        index.update([docs])
        assert word in index.search("dough")[0].text
        os.utime(docs / "bread.md", ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_file_that_moves_is_found_in_its_new_place(index: Index, docs: Path) -> None:
    index.update([docs])
    (docs / "sub").mkdir()
    (docs / "tea.md").rename(docs / "sub" / "tea.md")

    report = index.update([docs])

    assert (report.added, report.removed) == (1, 1)
    assert paths(index, "green tea") == ["kitchen/sub/tea.md"]


def test_progress_counts_every_file(index: Index, docs: Path) -> None:
    calls: list[tuple[int, int]] = []
    index.update([docs, docs / "tea.md"], progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (2, 2)  # one of them of both roots
    assert calls == sorted(calls)

    index.update([docs], progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (2, 2), "a file that is a root too comes along with its folder"


def test_questions_are_never_query_syntax(index: Index, docs: Path) -> None:
    index.update([docs])

    for query in ('"', "dough AND", "dough NOT water", "NEAR(dough water)", "body:dough", "*",
                  "dough*", "^dough", "{body}: dough", "'; DROP TABLE chunk; --", "dough\0", "-",
                  "dough \ud800", "(((", "a" * 2000, "dough " * 300):  # fmt: skip
        found = paths(index, query)
        assert found[:1] == (["kitchen/bread.md"] if "dough" in query else [])


def test_nothing_in_common_is_nothing_found(index: Index, docs: Path) -> None:
    index.update([docs])

    for query in ("xylophone zebra", "what is the of", "", "   ", "?!"):
        assert index.search(query) == []
    assert index.search("dough", limit=0) == []


def test_inflected_words_and_identifiers_are_found(index: Index, docs: Path) -> None:
    (docs / "api.py").write_text("def setUserName(user_id):\n    return rename_account(user_id)\n")
    index.update([docs])

    assert paths(index, "steeping minute")[0] == "kitchen/tea.md"
    assert paths(index, "rename an account") == ["kitchen/api.py"]
    assert paths(index, "setUserName") == paths(index, "user name") == ["kitchen/api.py"]


@pytest.mark.parametrize(
    ("name", "text", "question"),
    [
        ("sv", "Flyttfåglarna återvänder om våren när isarna har smält på sjöarna.",
         "När återvänder flyttfåglar?"),
        ("fr", "Les chevaux sauvages traversent la rivière chaque année au printemps.",
         "Où le cheval traverse-t-il une rivière ?"),
        ("zh", "长城是中国古代的军事防御工程，全长两万多公里。", "长城有多长？"),
        ("ru", "Перелётные птицы возвращаются весной, когда тает лёд.",
         "Когда возвращается птица?"),
        ("ja", "京都は千年以上にわたって日本の首都でした。", "京都は何年首都でしたか"),
    ],
)  # fmt: skip
def test_other_languages_in_one_folder(
    index: Index, docs: Path, name: str, text: str, question: str
) -> None:
    (docs / f"{name}.txt").write_text(text, encoding="utf-8")
    index.update([docs])

    assert paths(index, question)[0] == f"kitchen/{name}.txt"
    assert paths(index, "dough") == ["kitchen/bread.md"]


def test_headings_and_rare_words_weigh_more(index: Index, docs: Path) -> None:
    filler = "Many recipes mention yeast somewhere in a list of things to buy at the market. "
    for number in range(20):
        (docs / f"list-{number}.md").write_text(f"# List {number}\n\n{filler * 3}\n")
    (docs / "yeast.md").write_text(f"# Yeast\n\nIt is a fungus. {filler}\n")
    index.update([docs])

    assert paths(index, "what is yeast")[0] == "kitchen/yeast.md"
    assert paths(index, "yeast in green tea")[0] == "kitchen/tea.md"


def test_a_heading_that_says_what_is_asked_is_first(index: Index, docs: Path) -> None:
    often = "The dough freezes; freezing dough is a way to keep dough. " * 5
    (docs / "store.md").write_text(
        f"# Freezing dough in the winter\n\n{often}\n\n# Storage\n\n## Other ways\n\n{often}\n\n"
        "## How do I freeze the dough?\n\nWrap it.\n\n## Flour\n\nKeep it dry.\n"
    )
    index.update([docs])

    first, second, *_ = index.search("How do I freeze the dough?")
    assert first.heading == "Storage > How do I freeze the dough?"
    assert first.score > 0.9 > second.score
    assert index.search("flour")[0].heading == "Storage > Flour"


def test_of_a_long_section_with_such_a_heading_its_beginning_is_first(
    index: Index, docs: Path
) -> None:
    later = "\n\n".join(f"Freezing dough is slow in winter {n}. {'Wait. ' * 90}" for n in range(9))
    text = f"## Freezing dough\n\nWrap it well.{' Keep it flat.' * 80}\n\n{later}"
    (docs / "store.md").write_text(f"# Storage\n\n{text}\n")
    index.update([docs])

    first, second, *_ = index.search("How do I freeze dough?")
    assert first.text.startswith("Wrap it well.")
    assert second.heading == first.heading


def test_the_last_passage_is_where_the_section_of_the_first_goes_on(
    index: Index, docs: Path
) -> None:
    waiting = "\n\n".join("Nothing is done here but to wait for hours. " * 9 for _ in range(9))
    text = f"A poolish ferments overnight.\n\n{waiting}"
    (docs / "dough.md").write_text(f"# Ferments\n\n{text}\n")
    for number in range(5):
        (docs / f"note{number}.md").write_text(f"# Ovens\n\nOven {number} is on overnight.\n")
    index.update([docs])

    first, *others, last = index.search("Which poolish stays overnight?", limit=5)
    assert (last.heading, last.line) == (first.heading, first.end_line + 2)
    assert first.score > others[-1].score > last.score
    assert len(others) == 3


def test_a_long_page_leaves_room_for_other_pages(index: Index, docs: Path) -> None:
    sections = (f"## Part {part}\n\nSpelt, salt and spelt {part}.\n" for part in range(9))
    (docs / "manual.md").write_text("\n".join(sections))
    for page in ("notes", "faq"):
        (docs / f"{page}.md").write_text(f"Spelt is good; in these {page} is much else.\n")
    index.update([docs])

    pages = [Path(each.path).stem for each in index.search("spelt", limit=8)]
    assert pages[:4] == ["manual"] * 4
    assert set(pages[4:6]) == {"notes", "faq"}
    assert pages[6:] == ["manual"] * 2


def test_copies_of_a_page_leave_the_best_passages_in_front(index: Index, docs: Path) -> None:
    sections = [f"## Part {part}\n\nSpelt, salt and spelt {part}.\n" for part in range(6)]
    for version in range(3):
        (docs / f"v{version}.md").write_text("\n".join(sections))
    own = "## Part 9\n\nSpelt, salt and spelt 9.\n"
    (docs / "v3.md").write_text("\n".join([*sections, own]))
    for page in range(6):
        (docs / f"n{page}.md").write_text(f"{'Salt and water, ' * 20} and spelt {page}.\n")
    index.update([docs])

    found = index.search("spelt", limit=8)
    assert [each.heading for each in found[:4]] == [f"Part {part}" for part in range(4)]
    assert own.split("\n\n")[1].strip() in {each.text for each in found}


def test_a_section_of_the_same_heading_is_no_part_of_the_one_before(
    index: Index, docs: Path
) -> None:
    twice = "## connect\nOpens a connection.\n\n## connect\nCloses every connection.\n"
    (docs / "api.md").write_text(twice)
    index.update([docs])
    assert [each.continues for each in index.search("connect a connection")] == [False, False]


def test_drawings_are_skipped_and_manual_pages_are_read(index: Index, docs: Path) -> None:
    (docs / "oven.svg").write_text("<svg><text>bread</text></svg>")
    (docs / "bake.1").write_text(".TH BAKE 1\n.SH NAME\nbake \\- bread\n")
    (docs / "notes.1").write_text("Bread of the first day.\n")

    skipped = dict(index.update([docs]).skipped)
    assert skipped == {"kitchen/oven.svg": "graphics files are not read"}
    assert index.search("bake")[0].text == "bake - bread"


def test_a_headings_own_words_weigh_more_than_those_above(index: Index, docs: Path) -> None:
    (docs / "a.md").write_text("# Ovens\n\n## Cleaning\n\nUse a damp cloth now and then.\n")
    (docs / "b.md").write_text("# Kitchen\n\n## Ovens of stone\n\nUse a dry cloth now and then.\n")
    index.update([docs])

    assert paths(index, "cloth for ovens, please") == ["kitchen/b.md", "kitchen/a.md"]


def test_what_is_about_one_of_many_versions_comes_after_the_rest(index: Index, docs: Path) -> None:
    text = "The kneading speed is set with a lever, and the kneading time too."
    notes = [f"## {version} (2024-05-01)\n\n{text} {version}" for version in ("1.0", "1.1", "2.0")]
    (docs / "changes.md").write_text("# Changes\n\n" + "\n\n".join(notes))
    (docs / "guide.md").write_text(f"# Guide\n\n## 2.1 The machine\n\n{text} It is quiet.\n")
    index.update([docs])

    assert paths(index, "kneading speed")[0] == "kitchen/guide.md"
    assert index.search("kneading speed in 1.1")[0].heading == "Changes > 1.1 (2024-05-01)"


def test_documents_of_a_single_version_lose_nothing(index: Index, docs: Path) -> None:
    text = "The kneading speed is set with a lever."
    (docs / "old.md").write_text(f"# Guide\n\n{text}\n")
    index.update([docs])
    before = index.search("kneading speed")[0].score
    (docs / "old.md").write_text(f"# Guide to version 2.1\n\n{text}\n")
    index.update([docs])

    assert index.search("kneading speed")[0].score == pytest.approx(before, abs=0.02)


def test_a_search_that_demands_much_first_finds_what_a_whole_one_does(
    index: Index, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        words = " ".join(f"w{number % each}" for each in (2, 3, 5, 7, 11, 13))
        (docs / f"{number}.md").write_text(f"# Page {number}\n\n{words} {'more ' * (number % 4)}\n")
    index.update([docs])
    found = {
        question: index.search(question, 5) for question in ("w1 w2 w3 w4 more w6", "w6", "more")
    }
    monkeypatch.setattr("unified_flow.retrieval.index_reader.DEMANDS", (0.0,))

    assert found == {question: index.search(question, 5) for question in found}


def test_scores_fall_and_tell_how_much_of_the_question_is_there(index: Index, docs: Path) -> None:
    index.update([docs])

    full = index.search("flour, water, salt and yeast")
    part = index.search("flour and xylophones")

    assert [each.score for each in full] == sorted((each.score for each in full), reverse=True)
    assert full[0].score > 2 * part[0].score > 0


def test_the_only_chunk_of_an_index_still_has_a_score(index: Index, docs: Path) -> None:
    (docs / "tea.md").unlink()
    index.update([docs])

    assert index.search("flour, water, salt and yeast")[0].score > 0.4


def test_the_same_text_in_two_files_is_returned_once(index: Index, docs: Path) -> None:
    (docs / "copy.md").write_text(BREAD)
    index.update([docs])

    assert len(index.search("dough")) == 1


def test_a_search_sees_only_the_roots_it_was_asked_for(index: Index, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, text in ((one, BREAD), (two, BREAD.replace("twelve", "thirteen"))):
        folder.mkdir()
        (folder / "bread.md").write_text(text)
    index.update([one])
    index.update([two])
    assert paths(index, "dough") == ["two/bread.md"]
    assert index.counts()[1] == 1
    with index.reading() as reader:
        assert [reader.frequency(term) for term in ("dough", "thirteen", "twelv")] == [1, 1, 0]
        assert not any(map(reader.frequency, ['"', "dough OR yeast", ""]))
    index.update([one])
    assert paths(index, "dough") == ["one/bread.md"]
    with index.within([two]) as other:
        assert paths(other, "dough") == ["two/bread.md"]
    with Index.open(index.path.parent) as everything:
        assert sorted(paths(everything, "dough")) == ["one/bread.md", "two/bread.md"]
        assert everything.roots() == [one.resolve(), two.resolve()]
        assert everything.counts()[1] == 2
        with everything.reading() as reader:
            assert reader.frequency("dough") == 2


def test_the_score_in_one_root_does_not_depend_on_another(index: Index, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    (one / "a.md").write_text(BREAD)
    (one / "b.md").write_text(TEA)
    index.update([one])
    alone = index.search("water for the dough")
    for number in range(30):
        (two / f"{number}.md").write_text(f"# {number}\n\nWater and dough {number}.\n")
    index.update([two])

    with index.within([one]) as only_one:
        assert only_one.search("water for the dough") == alone


def test_roots_may_lie_within_one_another(index: Index, docs: Path) -> None:
    (docs / "sub").mkdir()
    (docs / "sub" / "soup.md").write_text("# Soup\n\nSoup is made of leeks.\n")
    index.update([docs])
    report = index.update([docs / "sub"])
    assert (report.added, report.unchanged) == (0, 1)
    assert paths(index, "leeks") == ["sub/soup.md"]
    assert paths(index, "dough") == []

    (docs / "sub" / "soup.md").rename(docs / "sub" / ".hidden.bin")
    (docs / "sub" / ".hidden.bin").write_bytes(b"\0")
    index.update([docs / "sub"])
    with index.within([docs]) as whole:  # still as it was when that root was indexed
        assert whole.counts()[1] == 3
    assert index.update([docs]).removed == 1


def test_two_roots_of_one_name_are_told_apart(index: Index, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "docs").mkdir(parents=True)
        (tmp_path / parent / "docs" / "x.md").write_text(f"Dough of {parent}.\n")
    index.update([tmp_path / "a" / "docs", tmp_path / "b" / "docs"])

    assert sorted(paths(index, "dough")) == [
        str(tmp_path / parent / "docs" / "x.md") for parent in ("a", "b")
    ]


def test_without_paths_everything_remembered_is_brought_up_to_date(
    index: Index, docs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("Ovens are hot.\n")
    index.update([docs, other])
    (docs / "tea.md").unlink()
    (other / "y.md").write_text("Kettles sing.\n")

    with Index.open(index.path.parent) as later:
        report = later.update()
        assert (report.removed, report.added) == (1, 1)
        assert len(later.search("ovens")) == len(later.search("kettles")) == 1


def test_a_remembered_root_that_is_not_there_is_no_deletion(
    index: Index, docs: Path, tmp_path: Path
) -> None:
    """As a disk that is not mounted, or a folder that was renamed."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("Ovens are hot.\n")
    index.update([docs, other])
    other.rename(tmp_path / "away")

    with Index.open(index.path.parent) as later:
        with pytest.raises(RetrievalError, match=r"not there any more: .*other") as caught:
            later.update()
        assert f"index --delete {other}" in str(caught.value.hint)
        (tmp_path / "away").rename(other)
        assert later.update().unchanged == 3
        assert len(later.search("ovens")) == 1

        (tmp_path / "away").mkdir()
        other.rename(tmp_path / "away" / "for good")
        assert later.forget([other]) == 1
        assert later.search("ovens") == []
        assert later.roots() == [docs.resolve()]
        with pytest.raises(RetrievalError, match="not in the document index"):
            later.forget([other])
        assert later.update().unchanged == 2


def test_what_is_not_indexed_cannot_be_searched(index: Index, docs: Path, tmp_path: Path) -> None:
    index.update([docs])
    (tmp_path / "new").mkdir()

    with index.within([tmp_path / "new"]) as other, pytest.raises(RetrievalError) as caught:
        other.search("dough")
    assert f"unified-flow index {tmp_path / 'new'}" in str(caught.value.hint)


def test_a_path_that_is_not_there_changes_nothing(index: Index, docs: Path) -> None:
    index.update([docs])

    with pytest.raises(InputError, match="no file or folder"):
        index.update([docs.parent / "nowhere"])
    assert paths(index, "dough") == ["kitchen/bread.md"]


def test_a_folder_without_documents_is_said_to_be_one(index: Index, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF")

    report = index.update([empty])

    assert report.chunks == 0
    assert report.skipped == (("empty/photo.jpg", "binary"),)
    with pytest.raises(InputError, match=r"empty/photo\.jpg: binary") as caught:
        report.require_documents()
    assert caught.value.hint
    assert not index.path.exists()  # a mistake is not remembered


def test_what_cannot_be_read_is_listed_every_time(index: Index, docs: Path) -> None:
    (docs / "photo.jpg").write_bytes(b"\xff\xd8\0")
    (docs / "paper.pdf").write_bytes(b"%PDF-1.4 plain enough to pass for text")
    (docs / "large.txt").write_bytes(bytes(16 * 1024 * 1024 + 1))
    (docs / "nul.md").write_bytes(b"text\0text")
    (docs / "old.txt").write_bytes("Smörgåsbord på svenska".encode("latin-1"))
    os.mkfifo(docs / "pipe.md")

    for _ in range(2):
        report = index.update([docs])
        assert dict(report.skipped) == {
            "kitchen/photo.jpg": "binary",
            "kitchen/paper.pdf": "broken: no PDF can be read in it",
            "kitchen/large.txt": "larger than 16 MiB",
            "kitchen/nul.md": "binary",
            "kitchen/pipe.md": "not a regular file",
        }
        assert report.guessed == (("kitchen/old.txt", "cp1252"),)
        assert report.files == 3
    assert paths(index, "smörgåsbord") == ["kitchen/old.txt"]

    (docs / "nul.md").write_text("Now it tells of dough.\n")
    report = index.update([docs])
    assert "kitchen/nul.md" not in dict(report.skipped)
    assert "kitchen/nul.md" in paths(index, "dough")


def test_names_that_are_no_text(index: Index, docs: Path) -> None:
    (docs / os.fsdecode(b"caf\xe9.md")).write_text("Espresso is strong.\n")
    (docs / "two\nlines.md").write_text("Ristretto is stronger.\n")
    index.update([docs])
    assert index.update([docs]).unchanged == 4

    (passage,) = index.search("espresso")
    assert passage.path == "kitchen/caf\\udce9.md"
    passage.model_dump_json().encode()
    assert len(index.search("ristretto")) == 1


def test_the_index_and_the_state_around_it_are_no_documents(docs: Path) -> None:
    with Index.open(docs / "shared_state" / "index") as index:
        (docs / "shared_state" / "turns").mkdir(parents=True)
        (docs / "shared_state" / "turns" / "context.md").write_text("dough dough dough\n")
        (docs / "logs").mkdir()
        (docs / "logs" / "x.jsonl").write_text('{"question": "dough"}\n')
        (docs / "private").mkdir()
        (docs / "private" / "x.md").write_text("dough\n")
        index.update([docs], UpdateOptions(exclude=frozenset([docs / "private"])))

        assert paths(index, "dough") == ["kitchen/bread.md"]
        assert index.update([docs], UpdateOptions(exclude=frozenset([docs / "private"]))).files == 2


@pytest.mark.parametrize("state", ["turns/turn_000001/context.md", "intervention_queue.json"])
def test_what_another_home_holds_is_no_document(index: Index, docs: Path, state: str) -> None:
    for name in (f"project/shared_state/{state}", "project/logs/x.jsonl"):
        file = docs / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"question": "dough"}\n')
    for name in ("logs/baking.md", "other/shared_state/a.md"):  # of a project that has such folders
        (docs / name).parent.mkdir(parents=True)
        (docs / name).write_text(f"dough of {name}\n")

    index.update([docs])
    assert set(paths(index, "dough")) == {
        "kitchen/bread.md",
        "kitchen/logs/baking.md",
        "kitchen/other/shared_state/a.md",
    }


def test_nobody_else_may_read_it(index: Index, docs: Path) -> None:
    index.update([docs])
    index.search("dough")

    modes = {stat.S_IMODE(file.stat().st_mode) for file in index.path.parent.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(index.path.parent.stat().st_mode) == 0o700


def test_collections_know_nothing_of_one_another(index: Index, docs: Path) -> None:
    index.update([docs])
    with Index.open(index.path.parent, "recipes") as other:
        other.update([docs / "tea.md"])
        assert paths(other, "water") == ["tea.md"]
    assert len(paths(index, "water")) == 2


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "x" * 65, "a\0"])
def test_the_name_of_a_collection_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        Index.open(tmp_path, name)


def test_an_interrupted_update_leaves_everything_as_it_was(index: Index, docs: Path) -> None:
    index.update([docs])
    before = index.search("water")
    for number in range(5):
        (docs / f"{number}.md").write_text(f"Water {number}.\n")

    def interrupt(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.update([docs], progress=interrupt)
    assert index.search("water") == before
    assert index.update([docs]).added == 5


def test_threads_may_search_while_another_updates(index: Index, docs: Path) -> None:
    index.update([docs])
    failures: list[object] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            found = {passage.path for passage in index.search("water", 50)}
            if not found >= {"kitchen/bread.md", "kitchen/tea.md"}:
                failures.append(found)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(20):
            (docs / f"{number}.md").write_text(f"Water {number}.\n")
            index.update([docs])
    finally:
        done.set()
        for thread in threads:
            thread.join()

    assert failures == []
    assert len(index.search("water", limit=50)) == 22
