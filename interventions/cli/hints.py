"""The hints of this command, which was perhaps given a home."""

from __future__ import annotations

from pathlib import Path

import click

from interventions.view.hints import for_home, home_flag

__all__ = ["home_flag", "with_home"]


def with_home(text: str) -> str:
    """`text` with the home that this command was given, in each command that it names."""
    return for_home(text, _given_home())


def _given_home() -> Path | None:
    context = click.get_current_context(silent=True)
    return context.params.get("home") if context is not None else None
