"""What a phase is doing while a model call or a tool call is under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unified_flow.errors.classification import Stage


@dataclass(frozen=True)
class CallSite:
    stage: Stage = "answer_pipeline"
    model: str | None = None
    tool: str | None = None
    tool_args: dict[str, Any] | None = None
