"""The intervention queue: failures that wait for a person.

Names are loaded on first use, so that `import interventions` costs nothing and commands that only
read the queue never load pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest as InterventionRequest
    from interventions.api import check_queue_health as check_queue_health
    from interventions.api import create_intervention_request as create_intervention_request
    from interventions.api import intervene as intervene
    from interventions.api import resolve_intervention as resolve_intervention
    from interventions.entry import Entry as Entry
    from interventions.entry import InterventionType as InterventionType
    from interventions.entry import Severity as Severity
    from interventions.entry import Transition as Transition
    from interventions.errors import AmbiguousIdError as AmbiguousIdError
    from interventions.errors import ArgumentError as ArgumentError
    from interventions.errors import ConflictError as ConflictError
    from interventions.errors import CorruptQueueError as CorruptQueueError
    from interventions.errors import LimitError as LimitError
    from interventions.errors import LockTimeoutError as LockTimeoutError
    from interventions.errors import NoResumerError as NoResumerError
    from interventions.errors import NotFoundError as NotFoundError
    from interventions.errors import QueryError as QueryError
    from interventions.errors import QueueError as QueueError
    from interventions.errors import StorageError as StorageError
    from interventions.home import find_home as find_home
    from interventions.queue import InterventionQueue as InterventionQueue
    from interventions.secrets.redaction import redact as redact
    from interventions.secrets.redaction import redact_text as redact_text
    from interventions.settings import Limits as Limits
    from interventions.storage.store import Admission as Admission
    from interventions.storage.store import AdmissionKind as AdmissionKind

_NAMES_IN = {
    "admission.request": "InterventionRequest",
    "api": "check_queue_health create_intervention_request intervene resolve_intervention",
    "entry": "Entry InterventionType Severity Transition",
    "errors": "AmbiguousIdError ArgumentError ConflictError CorruptQueueError LimitError "
    "LockTimeoutError NoResumerError NotFoundError QueryError QueueError StorageError",
    "home": "find_home",
    "queue": "InterventionQueue",
    "secrets.redaction": "redact redact_text",
    "settings": "Limits",
    "storage.store": "Admission AdmissionKind",
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names.split()}
__all__ = tuple(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
