"""PDF, Word, PowerPoint, Excel and EPUB: found, cited by page, and never a danger to the rest."""

from __future__ import annotations

import os
import resource
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.office import write_book, write_pdf, write_slides, write_word, write_workbook, zip_bomb
from unified_flow.lib.sandbox import SandboxLimits, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.retrieval.formats import document
from unified_flow.retrieval.formats.document import converter_of, lines_of, page_lines
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.turns.passage import path_of


@pytest.fixture(scope="module")
def converter() -> Iterator[Converter]:
    with Converter() as converter:
        yield converter


def test_the_process_that_converts_may_write_no_file(converter: Converter) -> None:
    with pytest.raises(UnusableError):
        converter.convert(converter_of(".docx"), b"PK no more")
    assert converter._process is not None
    limits = resource.prlimit(converter._process.pid, resource.RLIMIT_FSIZE)
    assert limits == (0, 0)


def test_a_pdf_is_cited_by_its_page(index: Index, shelf: Path) -> None:
    pages = [["Introduction", "The rover was built in Uppsala."],
             ["Power", "Its battery lasts", "for hours, an exam-", "ple."]]  # fmt: skip
    write_pdf(shelf / "rover.pdf", pages, titles=True)
    index.update([shelf])

    (first,) = index.search("Where was the rover built?", limit=1)
    assert (first.path, first.page, first.heading) == ("shelf/rover.pdf", 1, "Introduction")
    assert first.source() == "shelf/rover.pdf:p1"
    (second,) = index.search("battery", limit=1)
    assert (second.page, second.heading) == (2, "Power")
    assert second.source(len(second.text)) == "shelf/rover.pdf:p2"
    assert index.search("an example")[0].page == 2


def test_no_passage_goes_over_the_end_of_a_page(index: Index, shelf: Path) -> None:
    write_pdf(shelf / "short.pdf", [[f"Chapter {word}"] for word in ("alpha", "beta", "gamma")])
    report = index.update([shelf])
    assert report.chunks == 3
    assert index.search("gamma")[0].page == 3


def test_what_repeats_on_every_page_is_left_out(index: Index, shelf: Path) -> None:
    pages = [["Nordhavn Annual Report", f"Item {word} is sold.", f"page {n}"]
             for n, word in enumerate(("alpha", "beta", "gamma", "delta"), 1)]  # fmt: skip
    write_pdf(shelf / "report.pdf", pages)
    index.update([shelf])
    assert index.search("gamma")[0].text == "Item gamma is sold."
    assert [found.page for found in index.search("Nordhavn")] == [1]
    assert index.search("page") == []


def test_word_keeps_headings_lists_and_tables(index: Index, shelf: Path) -> None:
    write_word(shelf / "handbook.docx")
    index.update([shelf])
    (battery,) = index.search("How long does the battery last?", limit=1)
    assert battery.heading == "Rover handbook > Battery"
    assert "- Charge it below forty degrees." in battery.text
    assert battery.page is None
    assert "Part: Hub bolt | Torque: 45 Nm" in index.search("torque of the hub bolt")[0].text


def test_slides_are_numbered_and_their_notes_and_tables_read(index: Index, shelf: Path) -> None:
    write_slides(shelf / "deck.pptx")
    index.update([shelf])
    (budget,) = index.search("What does Apollo cost?", limit=1)
    assert budget.source() == "shelf/deck.pptx:p2"
    assert budget.heading == "Budget"
    assert "Project: Gemini | Owner: Quist" in budget.text
    assert index.search("zeppelin")[0].page == 2


def test_a_row_of_a_sheet_carries_the_names_of_its_columns(index: Index, shelf: Path) -> None:
    write_workbook(shelf / "book.xlsx")
    index.update([shelf])
    (row,) = index.search("Where is Nordhavn Gears?", limit=1)
    assert row.heading == "Suppliers"
    assert "Company: Nordhavn Gears | City: Umeå | Since: 1998" in row.text
    assert index.search("price of a flange")[0].heading == "Prices"


def test_a_cell_that_lies_far_out_costs_no_time(index: Index, shelf: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(("item", "count"))
    sheet.append(("otters", 7))
    sheet["A1048576"] = "a note at the very end"
    sheet["XFD1048570"] = "out of reach"
    book.save(shelf / "far.xlsx")
    report = index.update([shelf], UpdateOptions(bounds=SandboxLimits(timeout_s=20)))
    assert report.skipped == ()
    assert index.search("otters")[0].line == 2
    assert "a note at the very end" in index.search("note")[0].text


def test_a_book_is_read_in_the_order_of_its_spine(index: Index, shelf: Path) -> None:
    write_book(shelf / "novel.epub")
    index.update([shelf])
    (lantern,) = index.search("Who kept a lantern?", limit=1)
    assert (lantern.heading, lantern.line) == ("The harbour", 3)
    assert index.search("island in winter")[0].line > lantern.line


def test_lines_and_pages_are_those_of_the_converted_text(shelf: Path) -> None:
    data = write_slides(shelf / "deck.pptx").read_bytes()
    with Converter() as converter:
        parts = converter.convert(converter_of(".pptx"), data)
    lines = lines_of(parts)
    first, last = page_lines(parts)[2]
    assert lines[first - 1] == "Budget"
    assert "zeppelin" in "\n".join(lines[first - 1 : last])


def test_what_is_broken_is_skipped_with_its_reason(index: Index, shelf: Path) -> None:
    (shelf / "fine.md").write_text("# Fine\n\nThe bread is baked at dawn.\n")
    whole = write_word(shelf / "whole.docx").read_bytes()
    (shelf / "cut.docx").write_bytes(whole[:3000])
    (shelf / "cut.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n" + b"x" * 400)
    (shelf / "old.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with zipfile.ZipFile(shelf / "other.pptx", "w") as archive:
        archive.writestr("readme.txt", "no presentation")
    write_pdf(shelf / "locked.pdf", [["secret"]], encrypt="password")
    write_pdf(shelf / "scan.pdf", [[], []])
    endless = write_pdf(shelf / "endless.pdf", [["x"]])
    endless.write_bytes(endless.read_bytes().replace(b"/Count 1", b"/Count 5001"))
    zip_bomb(shelf / "bomb.docx", 300)

    report = index.update([shelf])

    assert report.files == 2
    reasons = {Path(path).name: reason for path, reason in report.skipped}
    assert reasons["cut.docx"].startswith("broken")
    assert reasons["cut.pdf"].startswith("broken")
    assert reasons["old.docx"] == "encrypted, or of an older format"
    assert reasons["other.pptx"].startswith("broken")
    assert reasons["locked.pdf"] == "encrypted: it needs a password"
    assert reasons["scan.pdf"].startswith("no text in it")
    assert reasons["endless.pdf"] == "5,001 pages, 5,000 at most"
    assert reasons["bomb.docx"].startswith("unpacks to 300 MiB")
    assert index.search("bread")[0].path == "shelf/fine.md"
    assert index.update([shelf]).skipped == report.skipped


@pytest.mark.parametrize("entity", ["SYSTEM 'file://{}'", "SYSTEM '{}'"])
def test_a_document_opens_no_other_file(
    entity: str, shelf: Path, tmp_path: Path, converter: Converter
) -> None:
    (tmp_path / "other.txt").write_text("hushhush")
    declared = f"<!DOCTYPE x [<!ENTITY e {entity.format(tmp_path / 'other.txt')}>]>".encode()
    for path, part, text in (
        (write_word(shelf / "a.docx"), "word/document.xml", b"The battery"),
        (write_slides(shelf / "a.pptx"), "ppt/slides/slide1.xml", b"Agenda"),
        (write_workbook(shelf / "a.xlsx"), "xl/worksheets/sheet1.xml", b"Nordhavn"),
        (write_book(shelf / "a.epub"), "META-INF/container.xml", b"<rootfile "),
    ):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        assert text in members[part]
        start = members[part].find(b"?>") + 2 if members[part].startswith(b"<?xml") else 0
        body = members[part][start:].replace(text, b"&e;" + text)
        members[part] = members[part][:start] + declared + body
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        try:
            sections = converter.convert(converter_of(path.suffix), path.read_bytes())
            shown = "\n".join(lines_of(sections))
        except UnusableError as exc:
            shown = str(exc)
        assert "hushhush" not in shown


def test_a_conversion_that_takes_too_long_is_ended(index: Index, shelf: Path) -> None:
    write_pdf(shelf / "slow.pdf", [["line"] * 50] * 400)
    write_word(shelf / "handbook.docx")
    report = index.update([shelf / "slow.pdf"], UpdateOptions(bounds=SandboxLimits(timeout_s=0.02)))
    assert report.skipped == (("slow.pdf", "converting it took more than 0.02 s"),)
    assert index.update([shelf / "handbook.docx"]).files == 1


def test_a_conversion_that_takes_too_much_memory_is_ended(index: Index, shelf: Path) -> None:
    write_word(shelf / "handbook.docx")
    with zipfile.ZipFile(shelf / "handbook.docx") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["word/document.xml"] = members["word/document.xml"].replace(
        b"<w:body>", b"<w:body>" + b"<w:p><w:r/></w:p>" * 1_000_000
    )
    with zipfile.ZipFile(shelf / "huge.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)

    report = index.update(
        [shelf], UpdateOptions(bounds=SandboxLimits(memory_bytes=256 * 1024 * 1024))
    )

    assert dict(report.skipped).keys() == {"shelf/huge.docx"}
    assert report.skipped[0][1] == "converting it took more than 256 MiB of memory"
    assert index.search("battery")[0].path == "shelf/handbook.docx"


def test_a_converter_that_was_killed_is_started_anew(shelf: Path) -> None:
    data = write_book(shelf / "novel.epub").read_bytes()
    with Converter() as converter:
        assert converter.convert(converter_of(".epub"), data)
        process = converter._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert converter.convert(converter_of(".epub"), data)
        with pytest.raises(UnusableError):
            converter.convert(converter_of(".pdf"), b"no")
        assert converter.convert(converter_of(".epub"), data)


def test_without_the_extra_it_says_what_to_install_and_reads_once_it_is_there(
    index: Index, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pdf(shelf / "rover.pdf", [["The rover was built in Uppsala."]])
    (shelf / "fine.md").write_text("Bread\n")
    document.missing_library.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(document, "find_spec", lambda name: None)
        for _ in range(2):
            report = index.update([shelf])
            assert report.skipped == (
                ("shelf/rover.pdf",
                 "PDF files need an extra: pip install 'unified-flow[documents]'"),
            )  # fmt: skip
    document.missing_library.cache_clear()
    assert index.update([shelf]).skipped == ()
    assert index.search("rover")[0].page == 1


def test_the_path_is_what_a_source_begins_with() -> None:
    for source in ("a/b.md:12", "a/b.md:p3", "https://host/a:8080/b#L12"):
        assert path_of(source) in ("a/b.md", "https://host/a:8080/b")
