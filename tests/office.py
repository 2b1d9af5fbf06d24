"""Real documents of the formats that need a converter, written by the usual libraries, which are
loaded when the first is written: they take a second, and most tests write none."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path


def write_pdf(path: Path, pages: list[list[str]], *, titles: bool = False, **more: object) -> Path:
    """A page for each list of lines; with `titles` the first line of each is a bookmark."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pagesize=A4, **more)
    for number, lines in enumerate(pages):
        text = canvas.beginText(72, 760)
        for line in lines:
            text.textLine(line)
        canvas.drawText(text)
        if titles and lines:
            canvas.bookmarkPage(f"page{number}")
            canvas.addOutlineEntry(lines[0], f"page{number}", level=0)
        canvas.showPage()
    canvas.save()
    return path


def write_scan(path: Path, pictures: int, *texts: str) -> Path:
    """As many pages of a picture each, with its bookmark, then pages of text."""
    from fpdf import FPDF
    from PIL import Image

    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for number in range(pictures):
        pdf.add_page()
        pdf.start_section(f"Sheet {number}")
        pdf.image(Image.new("L", (60, 60), 90), w=60)
    for text in texts:
        pdf.add_page()
        if text:
            pdf.cell(text=text)
    pdf.output(str(path))
    return path


def write_word(path: Path) -> Path:
    import docx

    document = docx.Document()
    document.add_heading("Rover handbook", 0)
    document.add_heading("Battery", 1)
    document.add_paragraph(
        "The battery of the rover lasts for eleven hours of driving, "
        "and for sixteen when the rover stands still and only its radio is on."
    )
    document.add_paragraph("Charge it below forty degrees.", style="List Bullet")
    document.add_heading("Wheels", 1)
    table = document.add_table(rows=0, cols=2)
    for row in (("Part", "Torque"), ("Hub bolt", "45 Nm")):
        cells = table.add_row().cells
        cells[0].text, cells[1].text = row
    document.save(str(path))
    return path


def write_slides(path: Path) -> Path:
    import pptx
    from pptx.util import Inches

    show = pptx.Presentation()
    for title, body in (("Welcome", "Agenda of the day"), ("Budget", "Apollo costs nine crowns")):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    slide.notes_slide.notes_text_frame.text = "Mention the zeppelin."
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for place, value in enumerate(("Project", "Owner", "Gemini", "Quist")):
        table.cell(place // 2, place % 2).text = value
    show.save(str(path))
    return path


def write_workbook(path: Path) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Suppliers"
    for row in (("Company", "City", "Since"), ("Nordhavn Gears", "Umeå", 1998)):
        sheet.append(row)
    more = book.create_sheet("Prices")
    more.append(("Article", "Price"))
    more.append(("Flange", 12.5))
    book.save(path)
    return path


def write_book(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
            '<item id="b" href="two.xhtml" media-type="application/xhtml+xml"/>'
            '<item id="a" href="one%20a.xhtml" media-type="application/xhtml+xml"/>'
            '<item id="c" href="cover.png" media-type="image/png"/></manifest>'
            '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
        )
        for name, title, text in (
            ("one a", "The harbour", "The ferryman Jonas kept a blue lantern in his boat."),
            ("two", "The winter", "When the bay froze they walked to the island in a day."),
        ):
            archive.writestr(
                f"OEBPS/{name}.xhtml",
                f"<html><head><title>x</title></head><body><h1>{title}</h1>\n<p>{text}</p></body></html>",
            )
    return path


def zip_bomb(path: Path, mebibytes: int) -> Path:
    """A Word document, as its name and parts have it, that unpacks to nothing but zeros."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as entry,
    ):
        for _ in range(mebibytes):
            entry.write(bytes(1024 * 1024))
    path.write_bytes(buffer.getvalue())
    return path
