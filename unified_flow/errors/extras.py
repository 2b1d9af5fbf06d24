"""What an installation may lack: the packages of an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unified_flow.errors import ConfigError


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Around imports of what only the extra installs; `what` a person wants needs them. Raises
    ConfigError, also for a package that lacks a library of the system."""
    try:
        yield
    except ImportError as exc:
        raise ConfigError(
            f"{what} needs the extra `{extra}`: {exc}",
            hint=f"pip install 'unified-flow[{extra}]'",
        ) from exc
