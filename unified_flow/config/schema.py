"""The JSON schema of `unified_flow.toml`, for editors."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from unified_flow.config.catalogue import QUEUE_TABLES
from unified_flow.config.settings import Settings

KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}


def json_schema() -> dict[str, Any]:
    """Draft 2020-12; a key that is no setting does not fit it."""
    schema = Settings.model_json_schema()
    schema["title"] = "unified_flow.toml"
    for table, settings in QUEUE_TABLES.items():
        schema["properties"][table] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                field.name: {
                    "type": KINDS[type(field.default)],
                    "default": field.default,
                    "description": field.metadata["description"],
                }
                for field in fields(settings)
            },
        }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
