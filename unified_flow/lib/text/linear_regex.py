"""Regular expressions of strangers, in an engine that does not backtrack: `re` would hold the
process for as long as a pattern such as (a+)+ likes, and no time-out could end it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema


@lru_cache(maxsize=256)
def searcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds what the pattern describes, in time linear in its length. Raises
    ValueError for what is no pattern, or needs backtracking: look-around, back-references."""
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError as exc:
        raise ValueError(str(exc).rpartition("error: ")[2].strip()) from exc
