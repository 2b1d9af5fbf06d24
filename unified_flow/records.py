"""Changing an immutable record."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def changed(record: T, **changes: Any) -> T:
    """`dataclasses.replace` for plain frozen dataclasses, without going through every field.

    A turn has two dozen fields and changes two dozen times; that was a fifth of what a turn costs
    beside its disk (benchmarks/turn.py). A name that is no field is a mistake, as it is there.
    """
    if unknown := changes.keys() - record.__dict__.keys():
        raise TypeError(f"{type(record).__name__} has no field {', '.join(sorted(unknown))}")
    new: T = object.__new__(type(record))
    new.__dict__.update(record.__dict__)
    new.__dict__.update(changes)
    return new
