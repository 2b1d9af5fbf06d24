"""What a reply must look like, from its pydantic model: the `response_format` of a chat completion,
and a shorter form of it for the prompt, for servers that do not enforce the former.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import BaseModel

from unified_flow.turns.sections import ToolDescription

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


@cache
def form(output: type[BaseModel]) -> str:
    """`{"decision": "PROCEED" | "CLARIFY", "confidence": number, ...}`: a JSON schema says the same
    in three times the tokens, and small models copy from it."""
    schema = output.model_json_schema()
    return _form(schema, schema.get("$defs", {}))


def signature(tool: ToolDescription) -> str:
    """`doc.search(query: string, limit?: number): What it does.`, then what is said of its
    arguments: a sixth of the tokens of its JSON schema."""
    schema = tool.parameters
    needed = schema.get("required", ())
    fields = schema.get("properties", {})
    args = [
        f"{name}{'' if name in needed else '?'}: {_form(node, schema.get('$defs', {}))}"
        for name, node in fields.items()
    ]
    said = [
        f"{name}: {node['description']}" for name, node in fields.items() if "description" in node
    ]
    told = " ".join([tool.description.strip(), *(f"{each.rstrip('.')}." for each in said)])
    return f"{tool.name}({', '.join(args)}): {' '.join(told.split())}"


def _form(node: dict[str, Any], named: dict[str, Any]) -> str:
    if "$ref" in node:
        return _form(named[node["$ref"].rpartition("/")[2]], named)
    if choices := node.get("anyOf"):
        return " | ".join(_form(choice, named) for choice in choices)
    if values := node.get("enum") or ([node["const"]] if "const" in node else []):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    match node.get("type"):
        case "object" if "properties" in node:
            fields = [
                f'"{name}": {_form(each, named)}'
                + (f" ({each['description']})" if "description" in each else "")
                for name, each in node["properties"].items()
            ]
            return "{" + ", ".join(fields) + "}"
        case "array":
            return f"[{_form(node.get('items', {}), named)}, ...]"
        case "object":
            return "{...}"
        case str(kind):
            return {"integer": "number"}.get(kind, kind)
    return "any"


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
