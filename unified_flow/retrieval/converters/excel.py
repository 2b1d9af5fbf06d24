"""Excel: a part for each sheet under its name, a line for each row, values as last computed."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import Part, UnusableError
from unified_flow.retrieval.converters.archive import opened
from unified_flow.retrieval.converters.tables import table_lines

MAX_COLUMNS = 500
MAX_EMPTY = 20  # rows in a row


def convert(data: bytes) -> Iterator[Part]:
    opened(data).close()
    import io

    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    broken = (InvalidFileException, zipfile.BadZipFile, ValueError, KeyError, TypeError,
              AttributeError, SyntaxError)  # fmt: skip
    try:
        book = openpyxl.load_workbook(
            io.BytesIO(data), read_only=True, data_only=True, keep_links=False
        )
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a size that the file only claims would be filled with None
            lines = list(table_lines(_rows(sheet)))
            yield Part((sheet.title,), lines, (sheet.title,))
    except broken as exc:
        raise UnusableError("broken: no workbook can be read in it") from exc


def _rows(sheet: Any) -> Iterator[list[str]]:
    """Without the many empty ones before a cell that lies far out."""
    empty = 0
    before = None
    for row in sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS):
        # For rows that the file lacks openpyxl gives one and the same.
        if (row is before and empty) or row.count(None) == len(row):
            before = row
            empty += 1
            if empty <= MAX_EMPTY:
                yield []
        else:
            empty = 0
            yield [_shown(value) for value in row]


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.10g}"
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return str(value)
