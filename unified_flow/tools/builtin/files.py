"""The file tools over one set of allowed folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from unified_flow.tools import Tool
from unified_flow.tools.builtin.file_glob import file_glob
from unified_flow.tools.builtin.file_grep import file_grep
from unified_flow.tools.builtin.file_read import file_read
from unified_flow.tools.builtin.roots import Roots


def file_tools(roots: Iterable[Path | str], exclude: Iterable[Path | str] = ()) -> tuple[Tool, ...]:
    """Raises ConfigError for a root that is not there. `exclude` stays closed within them."""
    allowed = Roots(roots, exclude)
    return file_read(allowed), file_glob(allowed), file_grep(allowed)
