"""The errors: codes, classes, and what to do about each, from the code that raises them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import getdoc
from pathlib import Path
from typing import Any

import interventions
import unified_flow
from from_code.markdown import cell, plain, table
from interventions import errors as queue_errors
from interventions.cli.terminal import Code
from unified_flow import errors
from unified_flow.api.routes.operations import ADVICE
from unified_flow.errors.classification import CODE_OF_STAGE, TABLE

EXITS = {
    Code.DONE: "answered, a question back, an honest abstention, or silence by policy",
    Code.FAILED: "a phase failed, and an intervention waits",
    Code.USAGE: "usage or configuration",
    Code.NOT_FOUND: "not found, or ambiguous",
    Code.QUEUE: "the queue's own trouble: a failure was not queued",
    Code.CONFLICT: "somebody else was first, or the entry is not in that state",
    Code.INTERRUPTED: "interrupted",
}


def error_classes() -> str:
    parts = ["## Exit codes of the commands"]
    parts.append(table(("code", "means"), ((str(int(code)), text) for code, text in EXITS.items())))
    parts.append("## Codes of the HTTP API")
    parts.append(
        table(
            ("code", "text", "again?", "what a client does", "what an engineer looks at"),
            (
                (
                    f"`{each.code}`",
                    each.message["en"],
                    _again(each),
                    _shown(each),
                    "; ".join(each.admin),
                )
                for each in ADVICE.errors
            ),
        )
    )
    parts.append("## What an exception means")
    rows = []
    for row in TABLE:
        names = ", ".join(f"`{each.__name__}`" for each in row.types)
        code = row.code or " or ".join(CODE_OF_STAGE[stage] for stage in row.stages)
        rows.append((names, ", ".join(row.stages), f"`{row.category}`", code))
    rows.append(("anything else", "any", "`unknown_error`", "by stage"))
    parts.append(table(("exception", "stage", "category", "code"), rows))
    parts.append("## Classes of the flow")
    parts.append(_classes(errors.UnifiedFlowError))
    parts.append("## Classes of the queue")
    parts.append(_classes(queue_errors.QueueError))
    parts.append("## What to do")
    parts.append("Each message that comes with a hint; `…` stands for a value.")
    parts.append(table(("error", "message", "hint"), sorted(set(_hints()))))
    return "\n\n".join(parts)


def _hints() -> Iterator[tuple[str, str, str]]:
    """Of every error that is made with a hint that stands in the code."""
    for package in (unified_flow, interventions):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(call, ast.Call) or not call.args:
                    continue
                name = ast.unparse(call.func).rpartition(".")[2]
                hint = next((each.value for each in call.keywords if each.arg == "hint"), None)
                texts = (_text(call.args[0]), _text(hint))
                if name.endswith("Error") and all(text.strip("…") for text in texts):
                    yield f"`{name}`", plain(texts[0]), plain(texts[1])


def _text(node: ast.expr | None) -> str:
    """A text in the code, with "…" for what is put into it; nothing for an expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _text(part) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    return ""


def _again(advice: Any) -> str:
    if not advice.retry:
        return "no"
    return "yes, later" if advice.wait else "yes"


def _shown(advice: Any) -> str:
    field = ", and marks the field" if advice.highlight_field else ""
    return f"shows the text ({advice.show.replace('_', ' ')}){field}"


def _classes(root: type[Exception]) -> str:
    def below(parent: type[Exception]) -> Iterator[type[Exception]]:
        for each in parent.__subclasses__():
            yield each
            yield from below(each)

    found = {
        each.__name__: each
        for each in below(root)
        if each.__module__.startswith(root.__module__.split(".")[0])
    }
    rows = (
        (
            f"`{name}`",
            f"`{each.__base__.__name__ if each.__base__ else ''}`",
            cell(getdoc(each) or ""),
        )
        for name, each in sorted(found.items())
    )
    return table(("error", "is a", "means"), rows)
