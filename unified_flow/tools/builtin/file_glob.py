"""`file.glob`: the files inside the allowed folders whose paths match a pattern."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from unified_flow.config import tool_names
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.discovery import FoundFile
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.tools.builtin.glob_pattern import GlobPattern
from unified_flow.tools.builtin.roots import Roots
from unified_flow.turns.results import Claim

NAME = tool_names.FILE_GLOB


def _pattern(text: str) -> str:
    GlobPattern(text)
    return text


Pattern = Annotated[str, Field(max_length=500), AfterValidator(_pattern)]


class GlobArguments(Arguments):
    pattern: Pattern = Field(description="*.md for names anywhere, docs/**/*.md for paths")
    limit: int = Field(default=100, ge=1, le=1000, description="how many files at most")


def file_glob(roots: Roots) -> Tool:
    async def run(args: GlobArguments) -> ToolOutput:
        files, skipped = await in_daemon_thread(partial(matching, roots, args.pattern))
        shown = [file.shown for file in files[: args.limit]]
        return ToolOutput(
            result={
                "pattern": args.pattern,
                "files": shown,
                "total": len(files),
                "truncated": len(files) > len(shown),
                "skipped": skipped,
            },
            claims=[Claim(claim=path, confidence=1.0, source=f"{path}:1") for path in shown],
        )

    return Tool(
        name=NAME,
        description="List files by a pattern of their paths. What git ignores is left out.",
        arguments=GlobArguments,
        access=frozenset({Access.READS}),
        run=run,
    )


def matching(roots: Roots, pattern: str) -> tuple[list[FoundFile], dict[str, int]]:
    """Files whose path, from the root's own name down or below it, matches the pattern."""
    glob = GlobPattern(pattern)
    files, skipped = roots.files()
    return [
        file
        for file in files
        if glob.matches(file.shown) or glob.matches(file.shown.partition("/")[2] or file.shown)
    ], skipped
