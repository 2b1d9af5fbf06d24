"""The routes of the service and the file formats, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from from_code.markdown import cell, plain, table
from interventions.schema import queue_schema
from unified_flow.api.app import routes
from unified_flow.engine.telemetry.query_log import RequestLine

METHODS = ("get", "post", "put", "delete")


def http_api() -> str:
    schema = routes().openapi()
    parts = ["## Routes"]
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is None:
                continue
            parts.append(f"### {method.upper()} {path}")
            parts.append(operation.get("description", ""))
            parts += list(_parameters(operation))
            if body := operation.get("requestBody"):
                parts.append(f"Body: {_of_content(body['content'])}")
            replies = [
                f"{status}: {_of_content(reply['content'])}"
                for status, reply in operation["responses"].items()
                if status.startswith("2") and reply.get("content")
            ]
            failed = [status for status in operation["responses"] if not status.startswith("2")]
            parts.append("; ".join([*replies, f"errors: {', '.join(failed)}"]))
    parts.append("## Bodies")
    for name, shape in sorted(schema["components"]["schemas"].items()):
        parts.append(f"### {name}")
        parts.append(plain(shape.get("description", "")))
        parts.append(_properties(shape))
    return "\n\n".join(filter(None, parts))


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    rows = [
        (
            f"`{each['name']}`",
            each["in"],
            _shape(each["schema"]),
            cell(each.get("description", "")),
        )
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield table(("parameter", "in", "type", "meaning"), rows)


def _of_content(content: dict[str, Any]) -> str:
    return ", ".join(
        f"{_shape(each['schema'])} as {kind}" if each.get("schema") else kind
        for kind, each in content.items()
    )


def files() -> str:
    entry = queue_schema()
    line = RequestLine.model_json_schema()
    fields = entry["properties"]["interventions"]["items"]
    return "\n\n".join(
        [
            "## shared_state/intervention_queue.json",
            plain(entry["description"]) + " An entry of `interventions`:",
            _properties(fields),
            "## logs/rag_queries.jsonl",
            plain(line["description"]),
            _properties(line),
            *(f"### {name}\n\n{_properties(shape)}" for name, shape in line["$defs"].items()),
        ]
    )


def _properties(shape: dict[str, Any]) -> str:
    if "enum" in shape:
        return ", ".join(f"`{each}`" for each in shape["enum"])
    needed = shape.get("required", ())
    rows = [
        (
            f"`{name}`",
            _shape(field),
            "yes" if name in needed else "",
            cell(field.get("description", "")),
        )
        for name, field in shape.get("properties", {}).items()
    ]
    return table(("field", "type", "always", "meaning"), rows)


def _shape(schema: dict[str, Any]) -> str:
    """A JSON schema in a word or two, with a link where it has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    for joined in ("anyOf", "oneOf", "allOf"):
        if joined in schema:
            return " or ".join(_shape(each) for each in schema[joined])
    if schema.get("type") == "array":
        return f"list of {_shape(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
