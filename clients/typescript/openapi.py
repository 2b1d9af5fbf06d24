"""The API's OpenAPI document, as `make types` writes it to openapi.json."""

from __future__ import annotations

import json

from unified_flow.api.app import routes

print(json.dumps(routes().openapi(), indent=2, ensure_ascii=False, sort_keys=True))
