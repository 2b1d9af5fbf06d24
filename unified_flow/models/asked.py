"""What a failed call was: for the person who reads its intervention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def noted(asked: dict[str, Any]) -> Iterator[None]:
    """An exception that passes here carries `asked` as its `model_call`.

    The error stays of its type, so that whoever sorts errors by type need not know this module.
    """
    try:
        yield
    except Exception as exc:  # only to be labelled: it is the boundary's to tell
        vars(exc)["model_call"] = asked
        raise
