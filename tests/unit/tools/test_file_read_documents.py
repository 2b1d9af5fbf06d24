"""`file.read` of documents that need a converter, and of places as a source names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.office import write_pdf, write_word
from tests.unit.tools.running import run
from unified_flow.errors import FileUnusableError, ToolArgumentError
from unified_flow.tools.builtin.file_search import file_tools
from unified_flow.tools.toolbox import Toolbox


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("one\ntwo\nthree\n")
    write_pdf(root / "rover.pdf", [["Cover"], ["The battery", "lasts long."], ["The end"]])
    write_word(root / "handbook.docx")
    return root


@pytest.fixture
def box(docs: Path) -> Toolbox:
    return Toolbox(file_tools([docs]))


def test_a_page_is_read_as_a_source_names_it(box: Toolbox) -> None:
    found = run(box, "file.read", path="docs/rover.pdf:p2")
    assert found.result["text"].split() == ["The", "battery", "lasts", "long."]
    assert found.result["page"] == 2
    assert [claim.source for claim in found.claims] == ["docs/rover.pdf:p2"]


def test_a_whole_document_is_read_with_its_pages_apart(box: Toolbox) -> None:
    found = run(box, "file.read", path="docs/rover.pdf")
    assert [claim.source for claim in found.claims] == [f"docs/rover.pdf:p{n}" for n in (1, 2, 3)]
    text = run(box, "file.read", path="handbook.docx").result["text"]
    assert "The battery of the rover lasts" in text


def test_a_line_at_the_end_of_a_path_is_where_reading_begins(box: Toolbox) -> None:
    found = run(box, "file.read", path="docs/a.md:2")
    assert (found.result["start_line"], found.result["text"]) == (2, "two\nthree")
    assert run(box, "file.read", path="a.md:2", start_line=3).result["text"] == "three"


def test_a_file_that_is_called_so_is_meant_first(box: Toolbox, docs: Path) -> None:
    (docs / "a.md:2").write_text("another\n")
    assert run(box, "file.read", path="docs/a.md:2").result["text"] == "another"


def test_a_page_that_is_not_there_is_a_mistake(box: Toolbox, docs: Path) -> None:
    with pytest.raises(ToolArgumentError, match="has 3 pages, so no page 9"):
        run(box, "file.read", path="docs/rover.pdf:p9")
    with pytest.raises(ToolArgumentError, match="has 0 pages"):
        run(box, "file.read", path="docs/a.md:p1")
    with pytest.raises(FileUnusableError, match="no file"):
        run(box, "file.read", path="docs/none.pdf:p1")


def test_a_broken_document_says_so(box: Toolbox, docs: Path) -> None:
    (docs / "cut.pdf").write_bytes(b"%PDF-1.7\n" + b"x" * 400)
    with pytest.raises(FileUnusableError, match=r"cut\.pdf cannot be read: broken"):
        run(box, "file.read", path="cut.pdf")
