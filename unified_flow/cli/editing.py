"""`resume --edit`: the phase's input in the person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.cli.exits import UsageError

if TYPE_CHECKING:
    from unified_flow.services import Services
    from unified_flow.turn import Turn


def edited_input(
    services: Services, turn: Turn, from_phase: str | None, rerun_tools: bool
) -> tuple[str, dict[str, Any]]:
    """(the phase, what was changed of its input). Raises QueueError: nothing has happened then."""
    from unified_flow import recipe
    from unified_flow.resuming import editing

    limits = services.settings.limits
    phase = editing.phase_to_edit(turn, limits, from_phase=from_phase, rerun_tools=rerun_tools)
    reads = recipe.load(phase, services.recipes).head.reads
    before = editing.input_of(turn, phase, reads, rewound=from_phase is not None)
    return phase, editing.edits(before, _in_editor(f"{phase}.json", editing.as_text(before)))


def _in_editor(name: str, text: str) -> str:
    """What the person saved. The file is in a folder of its own that nobody else may read."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen is None and not sys.stdin.isatty():
        raise UsageError("--edit needs a terminal, or $EDITOR")
    with tempfile.TemporaryDirectory(prefix="unified-flow-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(chosen or "vi"), str(path)], check=False)
        except OSError as exc:
            raise UsageError(f"the editor cannot be started: {exc}") from exc
        if done.returncode:
            raise UsageError(f"the editor ended with {done.returncode}; nothing has happened")
        return path.read_text(encoding="utf-8")
