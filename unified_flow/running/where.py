"""Where a turn is while a door of the kit is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unified_flow.failures.classify import Stage


@dataclass(frozen=True)
class Where:
    """What was going on when an exception came up."""

    stage: Stage = "answer_pipeline"
    model: str | None = None
    tool: str | None = None
    tool_args: dict[str, Any] | None = None
