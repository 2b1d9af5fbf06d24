"""What describes the API to others is that of the API as it is."""

from __future__ import annotations

import json
from pathlib import Path

from tests.api.service import Service
from unified_flow.api.app import routes
from unified_flow.errors.safe_messages import MESSAGES

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"


def test_the_description_that_is_checked_in_is_current(service: Service) -> None:
    written = (CLIENT / "openapi.json").read_text(encoding="utf-8")
    assert json.loads(written) == routes().openapi(), "make types"
    assert service.http.get("/openapi.json").json() == json.loads(written)


def test_the_types_were_made_of_it() -> None:
    """`.ci/run` makes them anew and compiles them; here at least every name is there."""
    schemas = routes().openapi()["components"]["schemas"]
    types = (CLIENT / "api.ts").read_text(encoding="utf-8")
    assert [name for name in schemas if f" {name}: " not in types] == []
    paths = routes().openapi()["paths"]
    assert [path for path in paths if f'"{path}": ' not in types] == []


def test_no_package_names_a_registry() -> None:
    for name in ("package.json", "package-lock.json"):
        assert "resolved" not in (CLIENT / name).read_text(encoding="utf-8")


def test_every_route_says_what_it_refuses() -> None:
    for path, methods in routes().openapi()["paths"].items():
        for method, route in methods.items():
            assert "200" in route["responses"], (path, method)


def test_what_triage_sees_has_types() -> None:
    paths = routes().openapi()["paths"]
    entry, turn = paths["/interventions/{intervention_id}"], paths["/turns/{turn}"]
    shown = [route["get"]["responses"]["200"]["content"] for route in (entry, turn)]
    names = [one["application/json"]["schema"]["$ref"].rsplit("/", 1)[-1] for one in shown]
    assert names == ["InterventionView", "TurnView"]


def test_every_route_says_which_token_it_wants(service: Service) -> None:
    described = routes().openapi()
    assert set(described["components"]["securitySchemes"]) == {"client", "triage"}
    wanted = {
        path: {name for way in route.get("security", []) for name in way}
        for path, methods in described["paths"].items()
        for route in methods.values()
    }
    assert wanted["/health"] == wanted["/ready"] == set()
    assert wanted["/query"] == {"client", "triage"}
    for path, names in wanted.items():
        if names == {"triage"} and "{" not in path:
            refused = service.http.get(path)
            assert refused.status_code in (401, 405), path


def test_every_text_is_there_in_both_languages() -> None:
    assert MESSAGES["en"].keys() == MESSAGES["sv"].keys()


def test_the_example_of_an_answer_is_one() -> None:
    schema = routes().openapi()["components"]["schemas"]["Answer"]
    assert set(schema["required"]) <= set(schema["example"])
