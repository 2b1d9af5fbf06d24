"""Every setting there is, of the flow and of the queue, with its meaning and its default."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from interventions.settings import NotificationSettings, QueueSettings, RetentionSettings
from unified_flow.config.settings import Settings
from unified_flow.config.tables import table_in

QUEUE_TABLES: dict[
    str, type[QueueSettings] | type[NotificationSettings] | type[RetentionSettings]
] = {
    "queue": QueueSettings,
    "notifications": NotificationSettings,
    "retention": RetentionSettings,
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


def every_setting() -> Iterator[Known]:
    """In the order of the file: what stands at the top first, then table by table."""
    known = [*_of_model(Settings, ()), *_of_queue()]
    yield from (each for each in known if len(each.path) == 1 and each.named is None)
    yield from (each for each in known if len(each.path) > 1 and each.named is None)
    yield from (each for each in known if each.named is not None)


def _of_model(table: type[BaseModel], above: tuple[str, ...]) -> Iterator[Known]:
    for name, field in table.model_fields.items():
        path = (*above, name)
        inner = table_in(field)
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


def _is_named(field: FieldInfo) -> bool:
    """dict[str, Table]: [models.NAME]."""
    return bool(get_args(field.annotation)) and field.default == {}


SCHEMA_FILE = "unified_flow.schema.json"
HEAD = f"""\
#:schema {SCHEMA_FILE}
# Settings of unified-flow. A flag beats the environment, which beats this file.
# What is commented out shows the default. Paths are relative to this file; ~ is your folder.
# Secrets do not belong here: a setting names the variable or the file that holds one.
# What stands in no table, such as docs or model, goes above the first line in brackets.
# What is in force, and why: unified-flow config show
"""


def template(docs: Sequence[str] = ()) -> str:
    """The text of a new `unified_flow.toml` over `docs`."""
    return HEAD + "\n".join(_lines(list(docs))) + "\n"


def _lines(docs: list[str]) -> Iterator[str]:
    table: tuple[str, ...] = ()
    for known in every_setting():
        if known.named is not None:
            yield from _example(known, known.named)
            continue
        if known.path[:-1] != table:
            table = known.path[:-1]
            yield f"\n[{'.'.join(table)}]"
        else:
            yield ""
        yield f"# {known.description}"
        if known.path == ("docs",) and docs:
            yield f"docs = {_toml(docs)}"
        else:
            yield f"# {known.path[-1]} = {_toml(known.default)}"


def _example(known: Known, table: type[BaseModel]) -> Iterator[str]:
    yield f"\n# {known.description}"
    yield f"# [{known.key}.NAME]"
    for name, field in table.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = '"…"' if default is PydanticUndefined else _toml(default)
        yield f"# {name} = {shown}  # {field.description}"


def _toml(value: Any) -> str:
    """JSON is TOML for texts, numbers, booleans and lists; a table and null are written here."""
    if value is None:
        return '"…"'
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    return json.dumps(value, ensure_ascii=False, default=str)


def json_schema() -> dict[str, Any]:
    """Draft 2020-12; a key that is no setting does not fit it."""
    schema = Settings.model_json_schema()
    schema["title"] = "unified_flow.toml"
    for table, settings in QUEUE_TABLES.items():
        own = TypeAdapter(settings).json_schema()
        schema["properties"][table] = own | {"additionalProperties": False}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
