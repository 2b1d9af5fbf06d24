"""The process of an MCP server: found, ended in a bounded time, and what is known of its end.

The SDK starts it and does not expose it; the shell in between notes what the SDK hides.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO, cast

from unified_flow.config.tables import McpSettings
from unified_flow.errors import ConfigError

SHELL = "/bin/sh"
STDERR_LINES = 5
STDERR_BYTES = 4096
TERMINATED_WITHIN_S = 1.0  # then it is killed
_LOOK_S = 0.01
_NOTE = 'echo $$ >"$0"; "$@"; code=$?; echo $code >>"$0"; exit $code'


class ServerProcess:
    """Raises ConfigError for a program that is not there."""

    def __init__(self, name: str, settings: McpSettings) -> None:
        assert settings.command is not None
        self._program = _program(name, settings.command)
        self.stderr = cast("TextIO", tempfile.TemporaryFile("w+"))  # noqa: SIM115
        handle, self._noted = tempfile.mkstemp(prefix="mcp-server-")
        os.close(handle)
        self._at_close: tuple[int | None, list[str]] | None = None

    def command(self, args: Sequence[str]) -> list[str]:
        """What SHELL is to be started with."""
        return ["-c", _NOTE, self._noted, self._program, *args]

    @property
    def exit_code(self) -> int | None:
        if self._at_close is not None:
            return self._at_close[0]
        return self._note(1)

    async def end(self) -> None:
        """The server and all that it started, whether or not they want to."""
        group = self._note(0)
        if group is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TERMINATED_WITHIN_S):
                    while True:
                        os.killpg(group, 0)  # raises once nobody is left
                        await asyncio.sleep(_LOOK_S)
            os.killpg(group, signal.SIGKILL)

    def _note(self, line: int) -> int | None:
        """The first is the shell's process id, which is that of the group; then the exit code."""
        with contextlib.suppress(FileNotFoundError):  # something tidied /tmp
            lines = Path(self._noted).read_text().split()
            return int(lines[line]) if len(lines) > line else None
        return None

    def last_lines(self) -> list[str]:
        if self._at_close is not None:
            return self._at_close[1]
        descriptor = self.stderr.fileno()
        size = os.fstat(descriptor).st_size
        data = os.pread(descriptor, STDERR_BYTES, max(0, size - STDERR_BYTES))
        lines = [line.strip() for line in data.decode(errors="replace").splitlines()]
        return [line for line in lines if line][-STDERR_LINES:]

    def close(self) -> None:
        """Deletes both files and remembers what they held."""
        self._at_close = self.exit_code, self.last_lines()
        self.stderr.close()
        Path(self._noted).unlink(missing_ok=True)


def _program(name: str, command: str) -> str:
    """Also what is installed beside this Python, which PATH does not always hold."""
    beside = Path(sys.executable).parent
    found = shutil.which(command) or shutil.which(command, path=str(beside))
    if found is None:
        raise ConfigError(
            f"the MCP server {name} cannot be started: there is no program {command}",
            hint=f"install it, or mend command under [mcp.{name}]",
        )
    return found
