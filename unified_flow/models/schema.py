"""The `response_format` of a chat completion, from the pydantic model that the reply must fit."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

# Strict servers reject these; the reply is held to them by pydantic all the same.
_UNSUPPORTED = frozenset({"default", "title", "minLength", "maxLength"})


@cache
def response_format(name: str, output: type[BaseModel]) -> dict[str, Any]:
    """`strict` wherever strictness can express the model: objects whose keys are all known.

    A free-form object (a tool's arguments) has no strict schema; the server then gets the
    schema as it is, with `strict` false. The result is shared: it is not to be changed.
    """
    schema = output.model_json_schema()
    strict = not _has_free_object(schema)
    return {
        "type": "json_schema",
        "json_schema": {
            "name": name,
            "strict": strict,
            "schema": _strict(schema) if strict else schema,
        },
    }


def _has_free_object(node: Any) -> bool:
    match node:
        case {"type": "object"} if "properties" not in node:
            return True
        case dict():
            return any(_has_free_object(child) for child in node.values())
        case list():
            return any(_has_free_object(child) for child in node)
    return False


def _strict(node: Any) -> Any:
    """Every object closed and every key required, as strict servers demand."""
    if isinstance(node, list):
        return [_strict(child) for child in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _strict(value) for key, value in node.items() if key not in _UNSUPPORTED}
    if isinstance(properties := node.get("properties"), dict):
        # The names in here are fields, not keywords: none is dropped.
        closed["properties"] = {key: _strict(value) for key, value in properties.items()}
        closed["required"] = list(properties)
        closed["additionalProperties"] = False
    return closed
