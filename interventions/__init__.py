"""The intervention queue: failures that wait for a person.

Names are loaded on first use, so that `import interventions` costs nothing and commands that only
read the queue never load pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest
    from interventions.api import (
        check_queue_health,
        create_intervention_request,
        intervene,
        resolve_intervention,
    )
    from interventions.entry import Entry, InterventionType, Severity, Transition
    from interventions.errors import (
        AmbiguousIdError,
        ArgumentError,
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
    from interventions.queue import InterventionQueue
    from interventions.secrets.redaction import redact, redact_text
    from interventions.storage.store import Admission, AdmissionKind, Limits

_NAMES_IN = {
    "admission.request": ("InterventionRequest",),
    "api": (
        "check_queue_health",
        "create_intervention_request",
        "intervene",
        "resolve_intervention",
    ),
    "entry": ("Entry", "InterventionType", "Severity", "Transition"),
    "home": ("find_home",),
    "queue": ("InterventionQueue",),
    "secrets.redaction": ("redact", "redact_text"),
    "storage.store": ("Admission", "AdmissionKind", "Limits"),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}

__all__ = [
    "Admission",
    "AdmissionKind",
    "AmbiguousIdError",
    "ArgumentError",
    "ConflictError",
    "CorruptQueueError",
    "Entry",
    "InterventionQueue",
    "InterventionRequest",
    "InterventionType",
    "LimitError",
    "Limits",
    "LockTimeoutError",
    "NoResumerError",
    "NotFoundError",
    "QueryError",
    "QueueError",
    "Severity",
    "StorageError",
    "Transition",
    "check_queue_health",
    "create_intervention_request",
    "find_home",
    "intervene",
    "redact",
    "redact_text",
    "resolve_intervention",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
