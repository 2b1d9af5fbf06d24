"""The queue file as JSON Schema, for programs in other languages; from the types of `entry.py`."""

from __future__ import annotations

import typing
from types import NoneType, UnionType
from typing import Any, TypedDict

from interventions.entry import Entry


class QueueFile(TypedDict):
    """`intervention_queue.json`; `dropped` counts by reason, `admitted` by kind."""

    version: int
    interventions: list[Entry]
    dropped: dict[str, int]
    admitted: dict[str, int]


def queue_schema() -> dict[str, Any]:
    """A key that is not in it was written by a newer version, and is kept."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_schema(QueueFile)}


_TYPES = {str: "string", int: "integer", bool: "boolean", NoneType: "null"}


def _schema(hint: Any) -> dict[str, Any]:
    parts = typing.get_args(hint)
    if typing.is_typeddict(hint):
        fields = typing.get_type_hints(hint, include_extras=True)
        return {
            "description": " ".join((hint.__doc__ or "").split()),
            "type": "object",
            "properties": {name: _schema(kind) for name, kind in fields.items()},
            "required": [name for name in fields if name in hint.__required_keys__],
        }
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return {**_schema(parts[0]), "format": parts[1]}
    if origin in (typing.Union, UnionType):
        return {"anyOf": [_schema(part) for part in parts]}
    if origin is list:
        return {"type": "array", "items": _schema(parts[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(parts[1])}
    return {} if hint is Any else {"type": _TYPES[hint]}
