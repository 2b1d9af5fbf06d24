"""Formats that developers have: found by a question, at the place in the file where they stand."""

from __future__ import annotations

import gzip
import json
import time
from email.message import EmailMessage
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odf.dc import Creator
from odf.draw import Frame, Page, TextBox
from odf.office import Annotation
from odf.opendocument import (
    OpenDocumentPresentation,
    OpenDocumentSpreadsheet,
    OpenDocumentText,
)
from odf.style import Footer, MasterPage, PageLayout
from odf.table import Table, TableCell, TableRow
from odf.text import H, List, ListItem, Note, NoteBody, NoteCitation, P

from tests.cli.test_ask import run
from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import InputError
from unified_flow.lib.sandbox import SandboxLimits
from unified_flow.retrieval.formats.chunk import chunks
from unified_flow.retrieval.formats.document import require_formats, sections_of
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.tools.builtin.file_read import read_text
from unified_flow.tools.builtin.roots import Roots
from unified_flow.turns.passage import Passage


def found(index: Index, query: str, file: Path, said: str) -> Passage:
    """The best passage, once `said` stands in it and on the line of the file that it names."""
    best = index.search(query)[0]
    assert said in best.text, best.text
    line = int(best.source(best.text.index(said)).rpartition(":")[2])
    assert said in file.read_text().split("\n")[line - 1]
    return best


# Jupyter


def notebook() -> Any:
    from nbformat import v4

    code = "model.fit(X)\nmodel.score(X_test)"
    printed = v4.new_output("stream", text="epoch 1\nepoch 2\nheld-out score 0.934\n")
    shown = v4.new_output("execute_result", {"text/plain": "Forest(depth=17)"})
    failed = v4.new_output("error", ename="ValueError", evalue="no column 'tide'", traceback=[])
    cells = [
        v4.new_markdown_cell("# Tides of Umea\n\nThe *tide gauge* was replaced in 1998."),
        v4.new_markdown_cell("## Training\n\nA forest is trained on `gauge.csv`."),
        v4.new_code_cell(code, outputs=[printed, shown], execution_count=1),
        v4.new_markdown_cell("## Plotting"),
        v4.new_code_cell("plot('tide')", outputs=[failed]),
    ]
    made = v4.new_notebook(cells=cells)
    made.metadata["language_info"] = {"name": "python"}
    return made


def write_notebook(path: Path) -> None:
    import nbformat

    nbformat.write(notebook(), path)


def test_a_notebook_is_cited_by_the_lines_of_its_file(index: Index, shelf: Path) -> None:
    file = shelf / "tides.ipynb"
    write_notebook(file)
    assert index.update([shelf]).skipped == ()

    best = found(index, "When was the tide gauge replaced?", file, "replaced in 1998")
    assert best.heading == "Tides of Umea"
    assert "The tide gauge was" in best.text
    best = found(index, "held-out score", file, "held-out score 0.934")
    assert best.heading == "Tides of Umea > Training"
    assert "```python\nmodel.fit(X)\nmodel.score(X_test)\n```" in best.text
    assert "Forest(depth=17)" in best.text
    found(index, "no column tide", file, "no column 'tide'")
    assert not any("cell_type" in each.text for each in index.search("tide training plotting"))


def test_a_notebook_in_one_line_is_laid_out(index: Index, shelf: Path) -> None:
    (shelf / "kaggle.ipynb").write_text(json.dumps(notebook()))
    index.update([shelf])
    best = index.search("held-out score")[0]
    assert best.heading == "Tides of Umea > Training"
    assert "held-out score 0.934" in best.text.split("\n")


def test_what_is_no_notebook_is_text(index: Index, shelf: Path) -> None:
    (shelf / "broken.ipynb").write_text('{"cells": [\n "the gauge of Umea"')
    (shelf / "other.ipynb").write_text('{"cells": 3,\n "note": "the gauge of Malmo"}')
    (shelf / "joined.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "markdown", "source": "Rain\nfell on Visby."}],
                    "metadata": {}}, indent=1)
    )  # fmt: skip
    assert index.update([shelf]).skipped == ()
    found(index, "Umea", shelf / "broken.ipynb", "Umea")
    assert index.search("Malmo")[0].path == "shelf/other.ipynb"
    assert index.search("Visby")[0].source() == "shelf/joined.ipynb:5"


# AsciiDoc

ADOC = """\
= Kelda manual
:product: Kelda
:toc: left

// a comment
{product} pumps water, see <<limits,the limits>> and https://example.org/[the site].

[[limits]]
== Limits

NOTE: A pump of {product} starts at *4 bar*.footnote:[Measured in Visby.]

[source,console]
----
== no title
kelda --start
----

.Ports
[%header]
|===
|Name |Port
|control |7071

|metrics
|7072
|===

Older chapter
~~~~~~~~~~~~~

* one
** two
. first

////
hidden
////
"""


def test_asciidoc_is_read_as_a_reader_sees_it(index: Index, shelf: Path) -> None:
    file = shelf / "kelda.adoc"
    file.write_text(ADOC)
    assert index.update([shelf]).skipped == ()
    first = index.search("pumps water")[0]
    assert first.text == "Kelda pumps water, see the limits and the site."
    assert first.source() == "shelf/kelda.adoc:6"
    limits = found(index, "pump starts at how many bar", file, "kelda --start")
    assert limits.heading == "Kelda manual > Limits"
    assert "A pump of Kelda starts at 4 bar. (Measured in Visby.)" in limits.text
    assert "```console\n== no title\nkelda --start\n```" in limits.text
    assert "Ports:\n" in limits.text
    assert "| control | 7071 |" in limits.text
    assert "| metrics | 7072 |" in limits.text
    older = index.search("older chapter")[0]
    assert older.heading == "Kelda manual > Limits > Older chapter"
    assert older.text == "* one\n  * two\n1. first"
    assert index.search("hidden") == []


# Manual pages

MAN = """\
.\\" A comment.
.de Sp
.if n .sp
..
.ie \\nF \\{\\
.  nr % 0
.\\}
.TH KELDA 8 "2026-01-02" "Kelda 3.1"
.SH NAME
kelda \\- pump water
.SH SYNOPSIS
.B kelda
[\\fB\\-\\-dry\\-run\\fR] \\fIWELL\\fR
.SH "EXIT STATUS"
.TP
.BR \\-t ", " \\-\\-timeout =\\fISECONDS\\fR
Wait so long for water\\(aqs arrival.
.IP \\(bu 2
It returns 75 if the well is dry.
.nf
kelda --dry-run
.fi
.SS Files
.I /etc/kelda.conf
"""
MDOC = """\
.Dd January 2, 2026
.Dt WELLCTL 1
.Os
.Sh NAME
.Nm wellctl
.Nd control wells
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl d Ar depth
Dig to the
.Ar depth
in metres, see
.Xr kelda 8 .
.El
"""


def test_manual_pages_are_read_by_either_macros(index: Index, shelf: Path) -> None:
    (shelf / "kelda.8").write_text(MAN)
    (shelf / "wellctl.1").write_text(MDOC)
    (shelf / "release.1").write_text("Release notes: the valve of Kiruna was mended.\n")
    assert index.update([shelf]).skipped == ()
    status = index.search("What is returned if the well is dry?")[0]
    assert status.heading == "KELDA(8) > EXIT STATUS"
    assert status.source(status.text.index("75")) == "shelf/kelda.8:19"
    assert "-t, --timeout=SECONDS:\nWait so long for water's arrival." in status.text
    assert "* It returns 75" in status.text
    assert "```\nkelda --dry-run\n```" in status.text
    synopsis = index.search("kelda synopsis")[0]
    assert synopsis.text == "kelda\n[--dry-run] WELL"
    assert index.search("etc kelda.conf")[0].heading == "KELDA(8) > EXIT STATUS > Files"
    dig = index.search("dig to depth metres")[0]
    assert dig.heading == "WELLCTL(1) > OPTIONS"
    assert dig.text == "-d depth:\nDig to the\ndepth\nin metres, see\nkelda 8."
    assert index.search("Kiruna")[0].text.startswith("Release notes")


def test_packed_manual_pages_are_read_as_those_of_a_system_are(index: Index, shelf: Path) -> None:
    (shelf / "kelda.8.gz").write_bytes(gzip.compress(MAN.encode()))
    (shelf / "wellctl.1.gz").write_bytes(gzip.compress(MDOC.encode()))
    (shelf / "bomb.1.gz").write_bytes(gzip.compress(b".TH BOMB 1\n" * 3_000_000))
    (shelf / "cut.1.gz").write_bytes(gzip.compress(MAN.encode())[:-9])
    (shelf / "none.1.gz").write_text("no gzip")
    (shelf / "tree.tar.gz").write_bytes(gzip.compress(b"tree\0"))
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    (shelf / "note.txt.gz").write_bytes(gzip.compress(key.encode()))
    skipped = dict(index.update([shelf]).skipped)
    assert skipped.pop("shelf/none.1.gz").startswith("broken: Not a gzipped file")
    assert skipped.pop("shelf/cut.1.gz").startswith("broken: Compressed file ended")
    assert skipped == {
        "shelf/bomb.1.gz": "larger than 16 MiB",
        "shelf/note.txt.gz": "may hold secrets: a private key",
        "shelf/tree.tar.gz": "archived files are not read",
    }
    status = index.search("What is returned if the well is dry?")[0]
    assert status.heading == "KELDA(8) > EXIT STATUS"
    assert status.source(status.text.index("75")) == "shelf/kelda.8.gz:19"
    assert index.search("dig to depth metres")[0].heading == "WELLCTL(1) > OPTIONS"
    roots = Roots([shelf])
    assert read_text(roots, roots.locate("kelda.8.gz")) == MAN


# OpenAPI

API = """\
openapi: 3.1.0
info:
  title: Wells
  description: Wells of the north.
paths:
  /wells/{id}:
    parameters:
      - $ref: '#/components/parameters/id'
    get:
      summary: One well
      description: |
        Tells the depth.

        Is refused at night.
      parameters:
        - name: unit
          in: query
          description: metres or feet
          schema: {type: string, default: metres}
      responses:
        '200':
          description: The well
        '404': {description: No such well was ever dug}
    delete:
      operationId: fillWell
      responses:
        default:
          description: Filled
components:
  parameters:
    id:
      name: id
      in: path
      required: true
      description: Number of the well, from 1000
  schemas:
    Well:
      type: object
      properties:
        depth: {type: integer, maximum: 900}
"""


def api_as_json() -> dict[str, object]:
    import yaml

    loaded: dict[str, object] = yaml.safe_load(API)
    return loaded


def test_an_operation_of_openapi_is_a_section(index: Index, shelf: Path) -> None:
    file = shelf / "wells.yaml"
    file.write_text(API)
    assert index.update([shelf]).skipped == ()
    get = found(index, "GET wells unit parameter", file, "unit")
    assert get.heading == "Wells > /wells/{id} > GET /wells/{id}: One well"
    lines = get.text.split("\n")
    assert lines[0] == "GET /wells/{id}"
    unit = "- name: unit; in: query; description: metres or feet; schema: type: string"
    assert any(line.startswith(unit) for line in lines)
    assert "- 404: No such well was ever dug" in lines
    assert get.line + lines.index("- 404: No such well was ever dug") == 23
    assert "Is refused at night." in get.text
    resolved = "- name: id; in: path; required: true; description: Number of the well, from 1000"
    assert any(resolved in each.text for each in index.search("Number of the well"))
    assert index.search("fillWell")[0].heading.endswith("DELETE /wells/{id}")
    assert index.search("maximum depth schema")[0].heading == "Wells > Well (schemas)"
    assert index.search("Wells of the north")[0].heading == "Wells"


def test_openapi_in_json(index: Index, shelf: Path) -> None:
    api = api_as_json()
    api["x-note"] = 'a "pump" \U0001f4a7'
    file = shelf / "wells.json"
    file.write_text(json.dumps(api, indent=2))
    (shelf / "package.json").write_text('{"name": "openapi", "note": "of Kiruna"}')
    assert index.update([shelf]).skipped == ()
    get = found(index, "GET one well unit", file, "unit")
    assert get.heading == "Wells > /wells/{id} > GET /wells/{id}: One well"
    assert "summary: One well" in get.text
    (shelf / "minified.json").write_text(json.dumps(api).replace("One well", "A fountain"))
    index.update([shelf])
    fountain = index.search("fountain")[0]
    assert fountain.heading == "Wells > /wells/{id} > GET /wells/{id}: A fountain"
    assert "- 404: No such well was ever dug" in fountain.text
    assert index.search("Kiruna")[0].source() == "shelf/package.json:1"
    api["info"] = {"title": "Wells", "description": "Of the north. " * 400}
    (shelf / "minified.json").unlink()
    file.write_text(json.dumps(api, indent=2, sort_keys=True))
    index.update([shelf])
    assert index.search("GET one well")[0].heading == get.heading
    texts = [each.text.strip() for each in index.search("wells", limit=20)]
    assert "/wells/{id}:" not in texts, "a path without anything under it answers nothing"


def test_broken_and_endless_openapi(index: Index, shelf: Path) -> None:
    (shelf / "broken.yaml").write_text("openapi: 3.0.1\npaths: [\nthe well of Kiruna")
    assert index.update([shelf]).skipped == ()
    laughs = "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'ha'}]\n" for n in range(40)
    )
    use = "paths:\n  /x:\n    get:\n      parameters:\n        - *a39\n"
    (shelf / "laughs.yaml").write_text(f"openapi: 3.0.1\n{laughs}{use}")
    report = index.update([shelf], UpdateOptions(bounds=SandboxLimits(timeout_s=1)))
    assert report.skipped == (("shelf/laughs.yaml", "converting it took more than 1 s"),)
    found(index, "Kiruna", shelf / "broken.yaml", "Kiruna")


# Python

MODULE = '''\
"""Pumps of `Kelda`.

Every pump has a serial number.
"""

LIMIT = 9


class Pump(Base):
    r"""Moves water; see :class:`Well`."""

    # Opened by hand.
    @cached
    def open(
        self, bar: float = 4.5
    ) -> bool:
        """Opens the inlet valve.

        Blocks for ten seconds::

            pump.open()

        """
        def inner(): return 1
        return self.spindle.turn()

    async def close(self): return "closed\\d"
'''


def test_python_is_read_by_its_definitions(index: Index, shelf: Path) -> None:
    file = shelf / "pump.py"
    file.write_text(MODULE)
    index.update([shelf])
    assert index.search("serial number")[0].text.startswith("Pumps of Kelda.")
    opened = found(index, "inlet valve", file, "Opens the inlet valve.")
    assert opened.heading == "Pump > open"
    assert "# Opened by hand." in opened.text
    assert "self, bar: float = 4.5" in opened.text
    assert "Blocks for ten seconds:\n```\npump.open()\n```" in opened.text
    assert "spindle" not in opened.text
    assert found(index, "spindle turn", file, "self.spindle.turn()").heading == "Pump > open"
    assert index.search("moves water")[0].text == "class Pump(Base):\nMoves water; see Well."
    assert found(index, "closed", file, "async def close").heading == "Pump > close"


def test_python_that_does_not_parse_is_source_code(index: Index, shelf: Path) -> None:
    (shelf / "old.py").write_text("class Pump:\n    def open(self):\n        print 'valve'\n")
    (shelf / "deep.py").write_text(f"x = {'-' * 50_000}1\n")
    assert index.update([shelf]).skipped == ()
    assert index.search("print valve")[0].heading == "Pump > open"


# Mail


def test_mail_is_decoded(index: Index, shelf: Path) -> None:
    inner = EmailMessage()
    inner["Subject"] = "Old order"
    inner.set_content("The anchor weighs ninety kilos.\n")
    mail = EmailMessage()
    mail["Subject"] = "Lieferung für Växjö"
    mail["From"] = "Ulla <ulla@example.org>"
    mail["Date"] = "Sun, 22 Nov 2026 10:00:00 +0000"
    mail.set_content("Die Brücke wird am Dienstag geliefert.\n", cte="quoted-printable")
    mail.add_alternative("<p>Die <b>Brücke</b></p>", subtype="html")
    mail.add_attachment("beam,length\nmain,42 m\n", subtype="csv", filename="beams.csv")
    mail.add_attachment(inner)
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    (shelf / "order.eml").write_bytes(bytes(mail))
    report = index.update([shelf])
    assert report.unread == (("shelf/order.eml", "attachment plan.pdf"),)
    bridge = index.search("Brücke geliefert")[0]
    assert bridge.text == "Die Brücke wird am Dienstag geliefert."
    assert bridge.heading == "Lieferung für Växjö"
    assert "From: Ulla <ulla@example.org>" in index.search("ulla")[0].text
    assert index.search("main beam 42 m")[0].heading.endswith("beams.csv")
    assert index.search("anchor ninety kilos")[0].heading.endswith("Old order")


def test_a_saved_page_is_read(index: Index, shelf: Path) -> None:
    page = EmailMessage()
    page["Subject"] = "Wells"
    page.set_content("<h1>Depth</h1><p>The deepest well is 900 m.</p>", subtype="html",
                     cte="quoted-printable")  # fmt: skip
    page.add_related(b"\x89PNG", "image", "png", filename="well.png")
    (shelf / "wells.mhtml").write_bytes(bytes(page))
    (shelf / "odd.eml").write_bytes(
        b"Subject: odd\nContent-Type: text/plain; charset=x-none\n\nThe pier is of oak.\n"
    )
    assert index.update([shelf]).unread == ()
    well = index.search("deepest well")[0]
    assert (well.heading, well.text) == ("Wells > Depth", "The deepest well is 900 m.")
    assert index.search("pier")[0].text == "The pier is of oak."


# Word processors


def test_open_document_text(index: Index, shelf: Path) -> None:
    made = OpenDocumentText()
    layout = PageLayout(name="page")
    made.automaticstyles.addElement(layout)
    master = MasterPage(name="Standard", pagelayoutname=layout)
    footer = Footer()
    footer.addElement(P(text="Nordhavn AB, Visby"))
    master.addElement(footer)
    made.masterstyles.addElement(master)
    made.text.addElement(H(outlinelevel=1, text="Lease"))
    paragraph = P(text="The rent is nine crowns")
    note = Note(noteclass="footnote")
    note.addElement(NoteCitation(text="1"))
    body = NoteBody()
    body.addElement(P(text="Due on Fridays."))
    note.addElement(body)
    paragraph.addElement(note)
    comment = Annotation()
    comment.addElement(Creator(text="Anna"))
    comment.addElement(P(text="Ask the landlord."))
    paragraph.addElement(comment)
    made.text.addElement(paragraph)
    made.text.addElement(H(outlinelevel=2, text="Keys"))
    items = List()
    for text in ("front door", "cellar"):
        item = ListItem()
        item.addElement(P(text=text))
        items.addElement(item)
    made.text.addElement(items)
    table = Table(name="Rooms")
    for row in (("Room", "Area"), ("Kitchen", "14 m2"), ("Hall", "6 m2")):
        line = TableRow()
        for text in row:
            cell = TableCell()
            cell.addElement(P(text=text))
            line.addElement(cell)
        table.addElement(line)
    made.text.addElement(table)
    made.save(str(shelf / "lease.odt"))
    (shelf / "broken.odt").write_bytes(b"PK no more")

    report = index.update([shelf])
    assert report.skipped == (("shelf/broken.odt", "broken: not a complete zip archive"),)
    rent = index.search("rent")[0]
    assert rent.heading == "Lease"
    assert rent.text.startswith("The rent is nine crowns1 (Due on Fridays.) (Ask the landlord.)")
    keys = index.search("cellar")[0]
    assert keys.heading == "Lease > Keys"
    assert "- front door" in keys.text
    assert "Room: Kitchen | Area: 14 m2" in keys.text
    assert index.search("Nordhavn")


RTF = r"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fswiss Arial;}}{\info{\title No}}
{\footer\pard Nordhavn AB\par}\f0 The caf\'e9 opens at {\b nine}.{\v\insrsid7 hidden
one} \v hidden two\v0  Come in.
{\footnote\pard On Sundays at ten.}\par
\trowd Tea\cell 4 crowns\cell\row\pard \u8364? is taken.\par}"""


def test_sheets_and_slides_of_open_document(index: Index, shelf: Path) -> None:
    book = OpenDocumentSpreadsheet()
    sheet = Table(name="Ferries")
    for row in (("Ferry", "May", "June"), ("Kelda", "17", "17")):
        line = TableRow()
        for text, group in groupby(row):
            cell = TableCell(numbercolumnsrepeated=str(len([*group])))
            cell.addElement(P(text=text))
            line.addElement(cell)
        sheet.addElement(line)
    book.spreadsheet.addElement(sheet)
    book.save(str(shelf / "ferries.ods"))
    talk = OpenDocumentPresentation()
    layout = PageLayout(name="L")
    talk.automaticstyles.addElement(layout)
    master = MasterPage(name="M", pagelayoutname=layout)
    talk.masterstyles.addElement(master)
    page, frame, box = Page(masterpagename=master), Frame(), TextBox()
    box.addElement(P(text="The pier was rebuilt in 1931."))
    frame.addElement(box)
    page.addElement(frame)
    talk.presentation.addElement(page)
    talk.save(str(shelf / "pier.odp"))

    assert index.update([shelf]).skipped == ()
    best = index.search("Kelda in June")[0]
    assert best.heading == "Ferries"
    assert "Ferry: Kelda | May: 17 | June: 17" in best.text
    assert "1931" in index.search("When was the pier rebuilt?")[0].text


def test_rich_text(index: Index, shelf: Path) -> None:
    (shelf / "cafe.rtf").write_text(RTF)
    (shelf / "broken.rtf").write_text("no rtf")
    report = index.update([shelf])
    assert report.skipped == (("shelf/broken.rtf", "broken: no RTF can be read in it"),)
    text = index.search("café")[0].text
    for said in ("The café opens at nine.", "On Sundays at ten.", "Tea|4 crowns", "€ is taken.",
                 "Nordhavn AB", "Come in."):  # fmt: skip
        assert said in text
    assert "hidden" not in text
    assert "Arial" not in text


# Which format


def test_graphics_are_left_out_with_a_reason(index: Index, shelf: Path) -> None:
    for name in ("a.svg", "b.EPS", "c.ps", "d.drawio"):
        (shelf / name).write_text("<svg><text>bread</text></svg>")
    report = index.update([shelf])
    assert {reason for _, reason in report.skipped} == {"graphics files are not read"}
    assert len(report.skipped) == 4


def test_a_format_is_forced_by_a_pattern(index: Index, shelf: Path) -> None:
    (shelf / "notes").mkdir()
    (shelf / "notes" / "well.txt").write_text("= Wells\n\n== Depth\n\nIt is 900 m deep.\n")
    (shelf / "well.txt").write_text("= Wells\n\nAbout 80 m wide.\n")
    index.update([shelf])
    assert index.search("900 deep")[0].heading == ""
    index.update(
        [shelf],
        UpdateOptions(reading=DocumentSettings(formats={"notes/*.txt": "adoc", "*.txt": "md"})),
    )
    assert index.search("900 deep")[0].heading == "Wells > Depth"
    assert index.search("80 wide")[0].heading == ""
    with pytest.raises(InputError, match="'rts' is no format"):
        require_formats({"*.txt": "rts"})


# As a whole


def test_questions_are_answered_from_all_of_them(home: Path, shelf: Path) -> None:
    write_notebook(shelf / "tides.ipynb")
    (shelf / "kelda.inc").write_text(ADOC)
    (shelf / "kelda.8").write_text(MAN)
    (shelf / "wells.yaml").write_text(API)
    (shelf / "pump.py").write_text(MODULE)
    (shelf / "cafe.rtf").write_text(RTF)
    (home / "unified_flow.toml").write_text('[documents]\nformats = {"*.inc" = "adoc"}\n')
    for question, answer, source in (
        ("When was the tide gauge replaced?", "in 1998", "tides.ipynb:"),
        ("What is the held-out score?", "0.934", "tides.ipynb:"),
        ("On which port is metrics?", "7072", "kelda.inc:25"),
        ("What does kelda return if the well is dry?", "75", "kelda.8:19"),
        ("How does DELETE /wells respond?", "Filled", "wells.yaml:24"),
        ("What does Pump.open do?", "Opens the inlet valve.", "pump.py:13"),
        ("When does the café open on Sundays?", "at ten", "cafe.rtf:2"),
    ):
        done = run("ask", question, "--docs", shelf, home=home)
        assert answer in done.stdout
        assert f"shelf/{source}" in done.stdout


_PIECE = st.sampled_from(
    ["\n", " ", "text", '"', "'''", '"""', "[[", "<<a,", "]", "{", "}", "\\[", "\\f(", "----\n",
     "====\n", "|===\n", "|a\n", ".TH A 1\n", ".SH B\n", ".IP\n", ".It\n", ".de x\n", "def f():\n",
     "class A:\n", '"cells": [', '"source": ["a"],\n', "null", "\\{", "```\n", "* ", "= T\n"]
)  # fmt: skip


@settings(deadline=None)
@given(
    pieces=st.lists(_PIECE, max_size=30),
    format=st.sampled_from([(".adoc", ADOC), (".man", MAN + MDOC), (".py", MODULE)]),
    at=st.integers(0, 500),
)
def test_whatever_a_file_holds_its_places_are_in_it(
    pieces: list[str], format: tuple[str, str], at: int
) -> None:
    extension, text = format
    text = text[:at] + "".join(pieces) + text[at:]
    for chunk in chunks(sections_of(extension, text)):
        assert 1 <= chunk.line <= chunk.end_line <= text.count("\n") + 1


@pytest.mark.parametrize("extension", [".adoc", ".man", ".py", ".ipynb"])
def test_a_line_of_nothing_but_marks_takes_no_time(extension: str) -> None:
    """Else it would end this run."""
    for mark in ("<<a,", "[[", "http://", "\\[", "\\f[", '"', "{", "|", "- "):
        started = time.process_time()
        assert list(chunks(sections_of(extension, f"{mark * 25_000}\n\nThe end.\n"))), mark
        assert time.process_time() - started < 2, mark
