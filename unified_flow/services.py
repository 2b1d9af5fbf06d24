"""What the turns of one process share, made once from the settings (`wiring.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unified_flow.config import Settings
from unified_flow.journal import TurnFolders
from unified_flow.memory import MemoryStore
from unified_flow.models.catalog import ModelCatalog
from unified_flow.policies import Policy
from unified_flow.querylog import QueryLog
from unified_flow.sessions import SessionStore
from unified_flow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from interventions import InterventionQueue


@dataclass(frozen=True)
class Services:
    home: Path
    settings: Settings
    config_digest: str
    folders: TurnFolders
    models: ModelCatalog
    toolbox: Toolbox
    sessions: SessionStore
    memory: MemoryStore
    queue: InterventionQueue
    query_log: QueryLog
    policy: Policy
