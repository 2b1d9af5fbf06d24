from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from unified_flow.models.schema import form, response_format
from unified_flow.turns.results import GatheredContext, Plan, QueryAnalysis, Reflection, Verdict


def objects(node: Any) -> list[dict[str, Any]]:
    match node:
        case dict():
            here = [node] if "properties" in node else []
            return here + [o for child in node.values() for o in objects(child)]
        case list():
            return [o for child in node for o in objects(child)]
    return []


@pytest.mark.parametrize("output", [QueryAnalysis, Reflection, Verdict])
def test_strict_schemas_close_every_object_and_require_every_key(output: type[BaseModel]) -> None:
    wanted = response_format("phase", output)["json_schema"]
    assert wanted["strict"] is True
    found = objects(wanted["schema"])
    assert found
    for item in found:
        assert item["additionalProperties"] is False
        assert item["required"] == list(item["properties"])
        assert all("default" not in field for field in item["properties"].values())


@pytest.mark.parametrize("output", [Plan, GatheredContext])
def test_a_free_form_object_cannot_be_strict(output: type[BaseModel]) -> None:
    wanted = response_format("phase", output)["json_schema"]
    assert wanted["strict"] is False
    assert wanted["schema"] == output.model_json_schema()


def test_fields_named_like_keywords_are_kept() -> None:
    class Odd(BaseModel):
        title: str
        default: int

    schema = response_format("odd", Odd)["json_schema"]["schema"]
    assert schema["required"] == ["title", "default"]
    assert set(schema["properties"]) == {"title", "default"}


def test_the_form_says_in_words_what_the_schema_holds() -> None:
    assert form(Reflection) == (
        '{"decision": "PROCEED" | "CLARIFY", "confidence": number, "reasoning": string, '
        '"clarification_question": string | null}'
    )
    assert '"args": {...}' in form(Plan)
    assert '"goals": [{"id": string, ' in form(Plan)
