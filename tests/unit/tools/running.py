"""One request through a toolbox, as the coordinator makes it."""

from __future__ import annotations

import asyncio

from unified_flow.tools import ToolOutput
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.results import ToolRequest


def run(box: Toolbox, tool: str, **args: object) -> ToolOutput:
    return asyncio.run(box.call(*box.check(ToolRequest(tool=tool, args=args))))
