"""Jupyter notebooks: the cells as Markdown, on the lines of the file where they stand.

Code and what it printed stand between fences. A notebook in a single line is read, and cited, as
Jupyter lays it out when it saves one.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import markdown

EXTENSIONS = frozenset({".ipynb"})
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')

Placed = tuple[int, str]
"""A string with its line in the file, from 0."""


def sections(text: str) -> Iterator[Section]:
    """The cells' sections; those of plain text if it is no notebook."""
    try:
        if "\n" not in text.strip():
            text = json.dumps(json.loads(text, object_hook=_in_lines), indent=1)
        ends = [match.start() for match in re.finditer("\n", text)]
        lines = (bisect(ends, match.start()) for match in _STRING.finditer(text))
        shown = [""] * (len(ends) + 1)
        notebook = _placed(json.loads(text), lines)
        _, language = notebook["metadata"].get("language_info", {}).get("name", (0, ""))
        for cell in notebook["cells"]:
            is_code = cell["cell_type"][1] == "code"
            _show(cell["source"], f"```{language}" if is_code else "", shown)
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                said = output.get("text") or data.get("text/plain") or output.get("evalue", [])
                fence = "" if "text/markdown" in data else "```"
                _show(data.get("text/markdown", said), fence, shown)
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError):
        yield Section((), text.split("\n"), line=1)
    else:
        yield from markdown.sections("\n".join(shown))


def _in_lines(found: dict[str, Any]) -> dict[str, Any]:
    """The object with a list of lines for each text of several lines."""
    return {
        key: value.splitlines(keepends=True) if isinstance(value, str) and "\n" in value else value
        for key, value in found.items()
    }


def _placed(value: Any, lines: Iterator[int]) -> Any:
    """Each string with its line; `lines` are those of all strings, names among them."""
    if isinstance(value, str):
        return next(lines), value
    if isinstance(value, list):
        return [_placed(each, lines) for each in value]
    if isinstance(value, dict):
        return {key: _placed(each, lines) for key, each in value.items() if next(lines) >= 0}
    return value


def _show(source: list[Placed] | Placed, fence: str, shown: list[str]) -> None:
    """Fences stand where the list has its brackets; a text in one line of the file stays in it."""
    pieces = source if isinstance(source, list) else [source]
    for line, text in pieces:
        shown[line] = " ".join(text.splitlines())
    if pieces and fence:
        longer = "`" * any("```" in text for _, text in pieces)
        shown[pieces[0][0] - 1] = longer + fence
        shown[pieces[-1][0] + 1] = longer + "```"
