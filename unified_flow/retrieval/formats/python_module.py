"""Python: a section for each class and function, its docstring as text; nothing is imported."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from textwrap import dedent

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import source_code
from unified_flow.retrieval.formats.chunk import Heading, outlined
from unified_flow.retrieval.formats.restructured_text import read

EXTENSIONS = frozenset({".py", ".pyi"})
_QUOTED = re.compile(r"""\s*[rRuU]?('{3}|"{3}|'|")(.*)\1\s*(?:#.*)?""", re.DOTALL)
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sections(text: str) -> Iterator[Section]:
    """The sections of a module; one that does not parse is read as any other language is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes
            module = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        yield from source_code.sections(text)
        return
    lines = text.split("\n")
    yield from outlined(lines, list(_headings(module, lines, 0)))


def _headings(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    lines: list[str],
    level: int,
) -> Iterator[Heading]:
    """What is defined, without lines of its own. Docstrings become what they show."""
    if ast.get_docstring(node, clean=False) is not None:
        end = _show_docstring(node.body[0], lines)
        name = "" if isinstance(node, ast.Module) else node.name
        yield Heading(name, level, end, end)  # the code below is a section of its own
    for each in node.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ():
        if isinstance(each, _DEFINITIONS):
            above = min([each.lineno, *(one.lineno for one in each.decorator_list)]) - 1
            start = source_code.first_line(lines, above, each.col_offset)
            yield Heading(each.name, level + 1, start, start)
            yield from _headings(each, lines, level + 1)
            yield Heading("", level + 1, each.end_lineno or 0, each.end_lineno or 0)


def _show_docstring(statement: ast.stmt, lines: list[str]) -> int:
    """Lay out the docstring without quotes and indentation; returns the line after it."""
    start, end = statement.lineno - 1, statement.end_lineno or 0
    if quoted := _QUOTED.fullmatch("\n".join(lines[start:end])):
        first, newline, more = quoted[2].partition("\n")
        lines[start:end] = read(f"{first.lstrip()}{newline}{dedent(more)}".split("\n"), ())[0]
    return end
