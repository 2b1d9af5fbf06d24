"""A schema of somebody else's server: nothing in it is fetched, and none of it takes for ever."""

from __future__ import annotations

from typing import Any

import pytest

from tests.servers.web_server import WebServer
from unified_flow.errors import ToolArgumentError, ToolError
from unified_flow.tools.mcp_server import MAX_SCHEMA_CHARS, arguments_of


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


EVIL = "^(a+)+$"


@pytest.mark.parametrize(
    "evil",
    [
        schema(a={"type": "string", "pattern": EVIL}),
        {"type": "object", "patternProperties": {EVIL: {}}, "additionalProperties": False},
        {"type": "object", "patternProperties": {EVIL: {}}, "unevaluatedProperties": False},
        {"type": "object", "propertyNames": {"pattern": EVIL + "|^a$"}},
        {
            **schema(),
            "$schema": "http://json-schema.org/draft-07/schema#",
            "anyOf": [{"properties": {"a": {"pattern": EVIL}}}, {"type": "object"}],
        },
    ],
)
def test_a_pattern_that_backtracks_without_end_comes_to_its_end(evil: dict[str, Any]) -> None:
    many = "a" * 60 + "!"
    for given in ({"a": many}, {many: 1}):
        try:
            arguments_of("b.t", evil).model_validate(given)
        except ToolArgumentError:
            continue


def test_a_pattern_is_still_checked() -> None:
    made = arguments_of("b.t", schema(a={"type": "string", "pattern": "^[a-z]+$"}))
    made.model_validate({"a": "abc"})
    with pytest.raises(ToolArgumentError, match=r"a: 'A1' does not match"):
        made.model_validate({"a": "A1"})
    known_to_re_alone = arguments_of("b.t", schema(a={"pattern": "^(?=x)x$"}))
    known_to_re_alone.model_validate({"a": "y"})  # the server will say


def test_what_is_not_named_is_still_refused() -> None:
    made = arguments_of("b.t", {**schema(a={"type": "integer"}), "additionalProperties": False})
    with pytest.raises(ToolArgumentError, match="Additional properties"):
        made.model_validate({"a": 1, "b": 2})


def test_nothing_is_fetched_for_a_reference() -> None:
    with WebServer({"/s.json": "{}"}) as server:
        made = arguments_of("b.t", schema(a={"$ref": server.url("/s.json")}))
        with pytest.raises(ToolError, match=r"refers to .*s\.json"):
            made.model_validate({"a": 1})
        assert server.asked == []


@pytest.mark.parametrize("given", [{"$ref": "#/$defs/none"}, {"$ref": "#/properties/a"}])
def test_a_reference_that_leads_nowhere_is_a_failure_of_the_tool(given: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="has a schema that refers to"):
        arguments_of("b.t", schema(a=given)).model_validate({"a": 1})


def test_a_schema_that_no_planner_could_be_told_is_refused() -> None:
    huge = schema(a={"description": "x" * MAX_SCHEMA_CHARS})
    with pytest.raises(ToolError, match="100,000 at most"):
        arguments_of("b.t", huge)
