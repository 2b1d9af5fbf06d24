"""JSON without blanks, as bytes."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python


def encode(value: Any) -> bytes:
    """Compact JSON; anything a model or a tool said comes back the same."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        # Half a surrogate pair has no UTF-8; escaped in ASCII it survives.
        text = json.dumps(value, separators=(",", ":"), default=to_jsonable_python)
        return text.encode("ascii")
