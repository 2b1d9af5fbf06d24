"""The intervention queue: failures that wait for a person.

Names are loaded on first use, so that `import interventions` costs nothing and commands that only
read the queue never load pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interventions.api import (
        check_queue_health,
        create_intervention_request,
        resolve_intervention,
    )
    from interventions.boundary import intervene
    from interventions.errors import (
        AmbiguousIdError,
        ConflictError,
        CorruptQueueError,
        LimitError,
        LockTimeoutError,
        NoResumerError,
        NotFoundError,
        QueryError,
        QueueError,
        StorageError,
    )
    from interventions.home import find_home
    from interventions.putting.admission import Admission, AdmissionKind, Limits
    from interventions.queue import InterventionQueue
    from interventions.request import InterventionRequest, InterventionType, Severity
    from interventions.secrets.redaction import redact, redact_text
    from interventions.storage.memory_store import MemoryStore

_HOME_OF = {
    "Admission": "putting.admission",
    "AdmissionKind": "putting.admission",
    "AmbiguousIdError": "errors",
    "ConflictError": "errors",
    "CorruptQueueError": "errors",
    "InterventionQueue": "queue",
    "InterventionRequest": "request",
    "InterventionType": "request",
    "LimitError": "errors",
    "Limits": "putting.admission",
    "LockTimeoutError": "errors",
    "MemoryStore": "storage.memory_store",
    "NoResumerError": "errors",
    "NotFoundError": "errors",
    "QueryError": "errors",
    "QueueError": "errors",
    "Severity": "request",
    "StorageError": "errors",
    "check_queue_health": "api",
    "create_intervention_request": "api",
    "find_home": "home",
    "intervene": "boundary",
    "redact": "secrets.redaction",
    "redact_text": "secrets.redaction",
    "resolve_intervention": "api",
}

__all__ = [
    "Admission",
    "AdmissionKind",
    "AmbiguousIdError",
    "ConflictError",
    "CorruptQueueError",
    "InterventionQueue",
    "InterventionRequest",
    "InterventionType",
    "LimitError",
    "Limits",
    "LockTimeoutError",
    "MemoryStore",
    "NoResumerError",
    "NotFoundError",
    "QueryError",
    "QueueError",
    "Severity",
    "StorageError",
    "check_queue_health",
    "create_intervention_request",
    "find_home",
    "intervene",
    "redact",
    "redact_text",
    "resolve_intervention",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
