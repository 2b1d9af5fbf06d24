"""The routes and their OpenAPI document; `python -m unified_flow.api.description` prints it."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI

from unified_flow import __version__
from unified_flow.api.gate import OPEN_PATHS
from unified_flow.api.routes import completions, guardrails, operations, query, triage

BEARER = {"type": "http", "scheme": "bearer"}
SCHEMES = {
    "client": BEARER | {"description": "needed where the service has such a token"},
    "triage": BEARER | {"description": "opens what a client's token does, and triage"},
}


def routes(**options: Any) -> FastAPI:
    """All routes, without the state that answers them: enough to describe them."""
    app = FastAPI(
        title="unified-flow",
        version=__version__,
        description="Answers from documents, in eight phases; every failure waits for a person.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would name the Host that the request claims
        **options,
    )
    for module in (query, completions, triage, guardrails, operations):
        app.include_router(module.router)
    plain = app.openapi
    app.openapi = lambda: _with_security(plain())  # type: ignore[method-assign]
    return app


def _with_security(description: dict[str, Any]) -> dict[str, Any]:
    """The tokens that each route wants; the gate checks them before routing."""
    description["components"]["securitySchemes"] = SCHEMES
    for path, methods in description["paths"].items():
        for route in methods.values():
            if {"triage", "guardrails"}.intersection(route["tags"]):
                route["security"] = [{"triage": []}]
            elif path not in OPEN_PATHS:
                route["security"] = [{}, {"client": []}, {"triage": []}]
    return description


def description() -> str:
    """The text of clients/typescript/openapi.json."""
    return json.dumps(routes().openapi(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(description(), end="")
