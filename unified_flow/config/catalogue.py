"""Every setting there is, of the flow and of the queue, with its meaning and its default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from interventions.settings import NotificationSettings, QueueSettings
from unified_flow.config.settings import NESTED, PREFIX, Settings

QUEUE_TABLES: dict[str, type[QueueSettings] | type[NotificationSettings]] = {
    "queue": QueueSettings,
    "notifications": NotificationSettings,
}


@dataclass(frozen=True)
class Known:
    """`path` are the names from the file's top; `named`: a table that takes any name."""

    path: tuple[str, ...]
    default: Any
    description: str
    named: type[BaseModel] | None = None

    @property
    def key(self) -> str:
        return ".".join(self.path)


def variable_of(path: tuple[str, ...]) -> str:
    """The environment variable that sets a setting, or a whole table as JSON."""
    return (PREFIX + NESTED.join(path)).upper()


def every_setting() -> Iterator[Known]:
    """In the order of the file: what stands at the top first, then table by table."""
    known = [*_of_model(Settings, ()), *_of_queue()]
    yield from (each for each in known if len(each.path) == 1 and each.named is None)
    yield from (each for each in known if len(each.path) > 1 and each.named is None)
    yield from (each for each in known if each.named is not None)


def _of_model(table: type[BaseModel], above: tuple[str, ...]) -> Iterator[Known]:
    for name, field in table.model_fields.items():
        path = (*above, name)
        inner = _table_in(field)
        if inner is None:
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            yield Known(path, default, field.description or "")
        elif _is_named(field):
            yield Known(path, {}, field.description or "", named=inner)
        else:
            yield from _of_model(inner, path)


def _of_queue() -> Iterator[Known]:
    for table, settings in QUEUE_TABLES.items():
        for field in fields(settings):
            assert field.default is not MISSING
            yield Known((table, field.name), field.default, field.metadata["description"])


def _table_in(field: FieldInfo) -> type[BaseModel] | None:
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


def _is_named(field: FieldInfo) -> bool:
    """dict[str, Table]: [models.NAME]."""
    return bool(get_args(field.annotation)) and field.default == {}
