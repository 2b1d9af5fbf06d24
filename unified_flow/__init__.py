"""A fail-fast, eight-phase RAG orchestrator with a human intervention queue.

Names are loaded on first use, so that `unified-flow --version` loads neither pydantic nor httpx.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unified_flow.errors import ConfigError, InputError, UnifiedFlowError
    from unified_flow.flow import UnifiedFlow
    from unified_flow.models import Model, ModelCall, ModelReply
    from unified_flow.models.prompt import prompt
    from unified_flow.phases.errors import PhaseError
    from unified_flow.tools.functions import tool
    from unified_flow.turns.turn import Turn

__version__ = "0.1.0"

_MODULE_OF = {
    "ConfigError": "errors",
    "InputError": "errors",
    "Model": "models",
    "ModelCall": "models",
    "ModelReply": "models",
    "PhaseError": "phases.errors",
    "Turn": "turns.turn",
    "UnifiedFlow": "flow",
    "UnifiedFlowError": "errors",
    "prompt": "models.prompt",
    "tool": "tools.functions",
}

__all__ = [
    "ConfigError",
    "InputError",
    "Model",
    "ModelCall",
    "ModelReply",
    "PhaseError",
    "Turn",
    "UnifiedFlow",
    "UnifiedFlowError",
    "prompt",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
