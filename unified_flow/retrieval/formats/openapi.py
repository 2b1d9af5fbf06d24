"""OpenAPI (Swagger): a section for each operation and component, on the lines of the file.

A parameter or a response is one line, with what it refers to; all else is left as it stands. A
document in a single line is read, and cited, as it is when it is laid out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats.chunk import Heading, Trail, outlined
from unified_flow.retrieval.formats.encoding import decode

EXTENSIONS = frozenset({".json", ".yaml", ".yml"})
# Anywhere: programs that sort the names put "components" and "info" before it.
_VERSION = re.compile(rb"""(?<![\w.$/-])(?:openapi|swagger)["']?\s*:\s*["']?[23]\.\d""")
_HOLDS = re.compile(rb"""(?<![\w.$/-])(?:paths|webhooks|components|definitions)["']?\s*:""")
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_PAIR = re.compile(r"\\ud[89ab]..\\ud[c-f]..", re.IGNORECASE)  # one character, in JSON alone
_PUNCTUATION = re.compile(r'(?<!\\)"|(?:[{\[,]|[\]}],?)\s*\Z')
_COMPONENTS = frozenset({"schemas", "definitions", "parameters", "responses", "securitySchemes"})


def is_openapi(extension: str, data: bytes) -> bool:
    return (
        extension in EXTENSIONS
        and (b"openapi" in data or b"swagger" in data)  # patterns take ten times as long
        and _VERSION.search(data) is not None
        and _HOLDS.search(data) is not None
    )


def openapi_sections(data: bytes) -> Iterator[Section]:
    """The sections of a description of an API; of plain text if it is no YAML or JSON."""
    import yaml

    text = _PAIR.sub(lambda match: json.loads(f'"{match[0]}"'), decode(data).text)
    is_json = text.lstrip().startswith("{")
    try:
        if is_json and "\n" not in text.strip():
            text = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
        root = yaml.compose(text.replace("\t", " "), Loader=yaml.CBaseLoader)
    except (ValueError, yaml.YAMLError):
        yield Section((), text.split("\n"), line=1)
        return
    shown = text.split("\n")
    if is_json:
        shown = [_PUNCTUATION.sub("", line).replace("\\n", " ") for line in shown]
    headings = sorted(_headings(root, shown), key=lambda each: each.start)
    yield from outlined(shown, headings, Trail(_said(_at(root, "info", "title"))))


def _headings(root: Any, shown: list[str]) -> Iterator[Heading]:
    """The headings of paths, operations and components. A parameter or a response becomes one line
    of `shown`."""
    for path, (begin, item) in _fields(_at(root, "paths")).items():
        yield Heading(path, 1, begin, begin + shown[begin].rstrip().endswith(":"))
        for method, (line, operation) in _fields(item).items():
            if operation.end_mark.line == line:
                continue  # all in one line, which is left as it is
            if method in _METHODS:
                shown[line] = f"{method.upper()} {path}"
                title = ": ".join(filter(None, [shown[line], _said(_at(operation, "summary"))]))
                yield Heading(title, 2, line, line)
            listed = operation if method == "parameters" else _at(operation, "parameters")
            for each in listed.value if _is(listed, "sequence") else ():
                at, _ = next(iter(_fields(each).values()), (each.start_mark.line, None))
                _put(shown, at, each, _said(_resolved(root, each)))
            for status, (at, each) in _fields(_at(operation, "responses")).items():
                _put(shown, at, each, f"{status}: {_said(_resolved(root, each))}")
        end = item.end_mark.line
        yield Heading("", 1, end, end)
    kinds = {**_fields(_at(root, "components")), **_fields(root)}
    for kind in kinds.keys() & _COMPONENTS:
        for name, (line, _) in _fields(kinds[kind][1]).items():
            yield Heading(f"{name} ({kind})", 1, line, line)


def _put(shown: list[str], line: int, node: Any, text: str) -> None:
    """Show the text in place of the node, and after what is there of another one."""
    end = max(node.end_mark.line, line + 1)
    before = f"{shown[line]} " if shown[line].startswith("- ") else ""
    shown[line:end] = [f"{before}- {text}", *[""] * (end - line - 1)]


def _said(node: Any) -> str:
    """What it holds, in one line."""
    if node is None:
        return ""
    if node.id == "scalar":
        return " ".join(node.value.split())
    if node.id == "sequence":
        return ", ".join(_said(each) for each in node.value)
    found = ((key.value, _said(value)) for key, value in node.value)
    said = (
        f"{key}: {value.rpartition('/')[2] if key == '$ref' else value}" for key, value in found
    )
    return "; ".join(said).removeprefix("description: ")


def _resolved(root: Any, node: Any) -> Any:
    """What it refers to, where that stands in this document."""
    reference = _said(_at(node, "$ref"))
    return _at(root, *reference[2:].split("/")) or node if reference.startswith("#/") else node


def _at(node: Any, *way: str) -> Any:
    for key in way:
        node = _fields(node).get(key, (0, None))[1]
    return node


def _fields(node: Any) -> dict[str, tuple[int, Any]]:
    """A mapping's keys, each with its line, from 0, and the node of its value."""
    pairs = node.value if _is(node, "mapping") else ()
    return {key.value: (key.start_mark.line, value) for key, value in pairs if _is(key, "scalar")}


def _is(node: Any, kind: str) -> bool:
    return node is not None and node.id == kind
