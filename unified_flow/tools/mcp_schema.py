"""Arguments checked by an MCP server's own schema, which is as untrusted as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self

from pydantic import BaseModel, RootModel, model_validator

from unified_flow.errors import ToolArgumentError, ToolError
from unified_flow.lib.text.linear_regex import searcher

ERRORS_SHOWN = 8
MAX_SCHEMA_CHARS = 100_000


def arguments_of(name: str, schema: dict[str, Any]) -> type[BaseModel]:
    """A model that any JSON object is, checked by `schema`. Raises ToolError for one that is none,
    or that is too large for a planner's prompt."""
    if (size := len(json.dumps(schema))) > MAX_SCHEMA_CHARS:
        raise ToolError(f"{name} has a schema of {size:,} characters; {MAX_SCHEMA_CHARS:,} at most")
    problems = _checker(name, schema)

    class Checked(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def _fits(self) -> Self:
            found = problems(self.root)
            if found:
                known = ", ".join(_properties(schema)) or "none"
                raise ToolArgumentError(
                    f"{name}: " + "; ".join(found[:ERRORS_SHOWN]),
                    hint=f"The arguments of {name} are: {known}.",
                )
            return self

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return schema

    return Checked


def _properties(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _checker(name: str, schema: dict[str, Any]) -> Callable[[dict[str, Any]], list[str]]:
    """A function that lists what is wrong with arguments."""
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as exc:
        raise ToolError(f"{name} has a schema that is none: {exc.message}") from exc
    bounded = jsonschema.validators.extend(kind, _IN_LINEAR_TIME)
    validator = bounded(schema, registry=Registry())  # nothing is fetched for a reference

    def problems(args: dict[str, Any]) -> list[str]:
        try:
            found = sorted(validator.iter_errors(args), key=lambda each: list(map(str, each.path)))
        except Unresolvable as exc:
            raise ToolError(
                f"{name} has a schema that refers to {exc.ref!r}, which is not in it",
                hint="nothing is fetched for a schema; tell the maker of the server",
            ) from exc
        except RecursionError as exc:
            raise ToolError(f"{name} has a schema that refers to itself without end") from exc
        return [
            f"{'.'.join(map(str, each.path)) or 'arguments'}: {each.message[:200]}"
            for each in found
        ]

    return problems


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    """As in the standard; a pattern that only a backtracking engine knows is left to the server."""
    from jsonschema import ValidationError

    with suppress(ValueError):
        if isinstance(instance, str) and not searcher(pattern)(instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _left_to_the_server(*_: Any) -> Iterator[Any]:
    """What would need patterns over names: the server checks its arguments once more."""
    return iter(())


def _additional(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    import jsonschema

    if "patternProperties" not in schema:
        standard = jsonschema.Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from standard(validator, wanted, instance, schema) or ()


_IN_LINEAR_TIME = {
    "additionalProperties": _additional,
    "pattern": _pattern,
    "patternProperties": _left_to_the_server,
    "unevaluatedProperties": _left_to_the_server,
}
