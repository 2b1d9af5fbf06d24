"""The wire models of data-model.md, one module an entity, with every rule of that document.

`message.py` Message, `query_result.py` QueryResult, `failure.py` ErrorContext, `agents.py`
AgentResponse. They are immutable. pydantic loads with them; nothing heavier does.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

# The document's own, for the API's description.
EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("examples.json").read_bytes())


class Wire(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_serialization_defaults_required=True
    )
