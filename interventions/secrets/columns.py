"""Secrets in the place that a name has in a list of names: `user, password = "a", "b"`, `(user,
password) VALUES (...)`, and tables with a header."""

from __future__ import annotations

import re
from itertools import islice, pairwise

from interventions.secrets.names import NameKind, name_kind
from interventions.secrets.rules import TEXT, Span, inside_quotes, without, words
from interventions.secrets.values import is_code, is_harmless, is_said

_WEAK = tuple(words("weak"))
_MOST_ROWS = 200
_LAST = ("", ")", "\n", "\r\n")


def mask_columns(text: str) -> str:
    found: list[Span] = []
    for head in TEXT["columns"].finditer(text):
        names = [name.strip(" \t\"'`") for name in head["names"].split(head["sep"])]
        names = list(filter(None, names))
        secret = [n for n, name in enumerate(names) if name_kind(name) is NameKind.SECRET]
        if not secret or (head["lines"] and not _begins_table(text, head, len(names))):
            continue
        at = head.end()
        for _ in range(_MOST_ROWS):
            begins = TEXT["row"].match(text, at)
            found_cells = TEXT["column"].finditer(text, begins.end() if begins else at)
            cells = list(islice(found_cells, len(names)))
            if not _is_row(text, cells, len(names)):
                break
            spans = filter(None, (_secret_in(cells[n], names[n], head) for n in secret))
            found += [span for span in spans if not found or span[0] >= found[-1][1]]
            at = cells[-1].end()
            if head["tuple"]:
                break
    return without(text, found)


def _begins_table(text: str, head: re.Match[str], columns: int) -> bool:
    """A header is the whole line, and is no row under another one."""
    start = text.rfind("\n", 0, head.start()) + 1
    above = text[:start].rstrip("\n").rpartition("\n")[2]
    alone = not text[start : head.start()].strip(" \t|│")
    return alone and above.count(head["sep"]) < columns - 1


def _is_row(text: str, cells: list[re.Match[str]], columns: int) -> bool:
    """As many cells as there are names, one after another on one line."""
    if len(cells) < columns or any(one["end"] in _LAST for one in cells[:-1]):
        return False
    follows = all(one.end() == two.start() for one, two in pairwise(cells))
    return follows and TEXT["row_end"].match(text, cells[-1].start("end")) is not None


def _secret_in(cell: re.Match[str], name: str, head: re.Match[str]) -> Span | None:
    start, end = inside_quotes(cell.string, *cell.span("cell"))
    value = cell.string[start:end]
    is_bare = (start, end) == cell.span("cell")
    if is_bare and (not head["lines"] or len(value) < 4 or is_code(value, loose=True)):
        return None
    if name_kind(value) is not NameKind.PLAIN or is_harmless(value, NameKind.SECRET):
        return None
    return None if name.lower().endswith(_WEAK) and is_said(value) else (start, end)
