"""Changing an immutable record."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def changed(record: T, **changes: Any) -> T:
    """`dataclasses.replace` for plain frozen dataclasses, without going through every field.

    A turn has two dozen fields and changes two dozen times; that was a fifth of what a turn costs
    beside its disk (benchmarks/turn.py). A name that is no field is a mistake, as it is there.
    """
    fields = record.__dict__
    if not changes.keys() <= fields.keys():
        unknown = ", ".join(sorted(changes.keys() - fields.keys()))
        raise TypeError(f"{type(record).__name__} has no field {unknown}")
    new: T = object.__new__(type(record))
    object.__setattr__(new, "__dict__", fields | changes)
    return new
