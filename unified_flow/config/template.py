"""A settings file to begin with: every setting with its meaning and default, commented out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from unified_flow.config.catalogue import Known, every_setting

SCHEMA_FILE = "unified_flow.schema.json"
HEAD = f"""\
#:schema {SCHEMA_FILE}
# Settings of unified-flow. A flag beats the environment, which beats this file.
# What is commented out shows the default. Paths are relative to this file; ~ is your folder.
# Secrets do not belong here: a setting names the variable or the file that holds one.
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
