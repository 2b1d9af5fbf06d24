"""Tables, types and text as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    if not lines:
        return ""
    names = list(head)
    return "\n".join([f"| {' | '.join(names)} |", "|---" * len(names) + "|", *lines])


def cell(text: str) -> str:
    return " ".join(text.split()).replace("\\|", "|").replace("|", "\\|")


def plain(text: str) -> str:
    """Text in which no `<` opens a tag."""
    return text.replace("<", "&lt;")


def value_text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def fields_of(model: type[BaseModel]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        shown = f"`{value_text(field.default)}`"
        if field.default is PydanticUndefined:
            shown = "made" if field.default_factory else "required"
        rows.append(
            (f"`{name}`", f"`{type_text(field.annotation)}`", shown, field.description or "")
        )
    return table(("field", "type", "default", "meaning"), rows)


def type_text(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "none"
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return (
        " or ".join(filter(None, map(type_text, get_args(annotation))))
        if _is_union(annotation)
        else _short(annotation)
    )


def _is_union(annotation: Any) -> bool:
    return "Union" in type(annotation).__name__ or str(annotation).startswith("typing.Optional")


def _short(annotation: Any) -> str:
    text = str(annotation)
    for prefix in ("typing.", "collections.abc.", "datetime."):
        text = text.replace(prefix, "")
    return text.rpartition(".")[2] if "[" not in text else text
