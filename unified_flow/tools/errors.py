"""What keeps a file from being read.

ToolError
├── FileUnusableError
└── PathRefusedError          also a PermissionError
"""

from __future__ import annotations

from unified_flow.errors import ToolError


class FileUnusableError(ToolError):
    """A file inside the allowed folders that is not there, is no text, or is too large."""


class PathRefusedError(ToolError, PermissionError):
    pass
