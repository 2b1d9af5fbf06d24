"""`python -m unified_flow.api.description`: the OpenAPI description, for generators of clients."""

from __future__ import annotations

import json

from unified_flow.api.app import routes


def description() -> str:
    """As clients/typescript/openapi.json holds it."""
    return json.dumps(routes().openapi(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(description(), end="")
