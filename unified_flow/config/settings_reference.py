"""Every setting there is, of the flow and of the queue: its meaning, its default, what it is now
and where that came from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from interventions.home import SETTINGS_FILE
from interventions.secrets.redaction import redact
from interventions.settings import TABLE_OF
from interventions.settings import settings_of as queue_table
from unified_flow.config.settings import Settings, load, read_tables, variable_set
from unified_flow.config.tables import table_in

QUEUE_TABLES = {table: kind for kind, table in TABLE_OF.items()}
SCHEMA_FILE = "unified_flow.schema.json"
HEAD = f"""\
#:schema {SCHEMA_FILE}
# Settings of unified-flow. A flag beats the environment, which beats this file.
# What is commented out shows the default. Paths are relative to this file; ~ is your folder.
# Secrets do not belong here: a setting names the variable or the file that holds one.
# What stands in no table, such as docs or model, goes above the first line in brackets.
# What is in force, and why: unified-flow config show
"""
HIDDEN = "[redacted]"


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


def every_setting() -> list[Known]:
    """All settings in the order of the file: what stands at the top first, then table by table."""
    known = [*_of_model(Settings, ()), *_of_queue()]
    return sorted(known, key=lambda each: (each.named is not None, len(each.path) > 1))


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


@dataclass(frozen=True)
class Setting:
    """`value` is JSON-able and holds no secret; `source` is `default`, a file or a variable."""

    key: str
    value: Any
    source: str
    description: str


def settings_of(home: Path) -> list[Setting]:
    """Raises ConfigError or SettingsError for a setting that is wrong."""
    settings = load(home)
    now = settings.model_dump(mode="json") | {
        table: asdict(queue_table(home, kind)) for kind, table in TABLE_OF.items()
    }
    path, file = read_tables(home)
    where = str(path) if path is not None else SETTINGS_FILE
    return [
        Setting(".".join(known.path), _shown(known.path, value), _source(known, file, where), text)
        for known in _with_named(settings)
        for value, text in [(_at(now, known.path), known.description)]
    ]


def _with_named(settings: Settings) -> Iterator[Known]:
    """A table that takes any name stands for the settings of those that are there."""
    for known in every_setting():
        if known.named is None:
            yield known
            continue
        for name in _at(settings.model_dump(), known.path):
            for field, info in known.named.model_fields.items():
                yield Known((*known.path, name, field), None, info.description or "")


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def _source(known: Known, file: dict[str, Any], where: str) -> str:
    for end in range(len(known.path), 0, -1):
        if (variable := variable_set(known.path[:end])) is not None:
            return variable
    try:
        _at(file, known.path)
    except (KeyError, TypeError):
        return "default"
    return where


def _shown(path: tuple[str, ...], value: Any) -> Any:
    """An address may hold a password; of a key only the name of its variable is a setting."""
    if path[-1].endswith("_env") and isinstance(value, str):
        return f"{value} ({'set' if os.environ.get(value) else 'not set'})"
    if path == ("notifications", "url") and value:
        return HIDDEN  # an Apprise address is made of tokens
    if path[0] == "mcp" and path[-1] == "env":
        return dict.fromkeys(value, HIDDEN)  # no secrets belong there, and people put them there
    if path[0] == "mcp" and path[-1] == "url" and value:
        value, mark, _ = value.partition("?")
        return redact(value) + (f"{mark}{HIDDEN}" if mark else "")
    return redact(value)
