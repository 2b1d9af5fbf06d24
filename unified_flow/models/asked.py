"""What was asked of a model: for whoever reads of its failure, and whether all of it was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unified_flow.models.tokens import estimate_tokens

_SMALLEST_CONTEXT = 1000  # fewer tokens are what a server counts that leaves out what it had cached


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


def estimated(messages: list[dict[str, str]]) -> int:
    """About how many tokens a prompt has."""
    return sum(estimate_tokens(message["content"]) for message in messages)


def is_cut(about: int, counted: int | None) -> bool:
    """True if the server counted so few tokens of a prompt that it cannot have read it all. A cut
    that takes less than half cannot be told from a tokenizer that makes few tokens."""
    return counted is not None and _SMALLEST_CONTEXT <= counted < about / 2
