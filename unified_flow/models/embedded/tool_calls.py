"""A question that names a tool and its arguments: "use time.now timezone=Europe/Oslo"."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import cache
from typing import Any

from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.tools.given import from_json, from_pairs
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.sections import ToolDescription


@cache
def _call() -> re.Pattern[str]:
    every = any_language()
    return re.compile(
        rf"^\W{{0,3}}(?:{every.please}\s+)?(?P<verb>{every.call})\s+(?:{every.the_tool}\s+)?"
        rf"(?P<tool>[\w-]+(?:\.[\w-]+)*)(?:\s+(?:{every.arguments}\s+)?(?P<rest>\S.*?))?[\s.!?]*$",
        re.IGNORECASE | re.DOTALL,
    )


def tool_call(query: str, tools: Iterable[ToolDescription]) -> ToolRequest | None:
    """Only for a tool that there is, by its whole name, with arguments that can be read."""
    match = _call().match(query)
    if match is None:
        return None
    tool = next((each for each in tools if each.name == match["tool"]), None)
    if tool is None:
        return None
    try:
        args = _arguments(match["rest"] or "", tool)
    except ValueError:
        return None
    return ToolRequest(tool=tool.name, args=args, goal_id="g1")


def call_language(query: str) -> str | None:
    """Of a question that names a tool: its one word tells, and the tool's name and arguments would
    mislead. None for any other question."""
    match = _call().match(query)
    if match is None or "." not in match["tool"]:
        return None
    return next(
        each.language
        for each in lexicons()
        if each.call and re.fullmatch(each.call, match["verb"], re.IGNORECASE)
    )


def _arguments(rest: str, tool: ToolDescription) -> dict[str, Any]:
    if rest.startswith("{"):
        return from_json(rest)
    return from_pairs(shlex.split(rest), tool.parameters)
