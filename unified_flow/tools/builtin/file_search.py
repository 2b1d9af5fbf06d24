"""`file.glob` and `file.grep`: files inside the allowed folders by a pattern of their paths, and
lines of them that match a regular expression. `file_tools` has `file.read` as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from unified_flow.config import tool_names
from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import FileUnusableError, PathRefusedError, ToolTimeoutError
from unified_flow.lib.text.linear_regex import searcher
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.discovery import SECRET, FoundFile
from unified_flow.tools import Access, Arguments, Tool, ToolOutput, claim
from unified_flow.tools.builtin.file_read import file_read, read_text
from unified_flow.tools.builtin.roots import Roots, SecretFileError

GREP_TIMEOUT_S = 10.0
LINE_CHARS = 20_000  # of a line that are searched: a line of minified code is no line
SHOWN_CHARS = 500


def checked_glob(pattern: str) -> str:
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ValueError("a pattern is relative and does not go up (no leading /, no ..)")
    if not pattern.strip() or "\0" in pattern:
        raise ValueError("a pattern is text such as *.md or docs/**/*.py")
    return pattern


def glob_matches(pattern: str, path: str) -> bool:
    """Whether the path fits *, ?, [...] and **, in time that does not explode.

    `**` stands for any number of folders, `docs/` for all that is in it; without a slash the
    pattern matches names anywhere. Upper and lower case differ.
    """
    anywhere = pattern if "/" in pattern else f"**/{pattern}"
    whole = f"{anywhere}**" if pattern.endswith("/") else anywhere
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    names = path.split("/")

    @cache
    def fits(part: int, name: int) -> bool:
        """Whether the parts from this one on are the names from that one on."""
        if part == len(parts) or name == len(names):
            return part == len(parts) and name == len(names)
        if parts[part] == "**":
            return any(fits(part + 1, later) for later in range(name, len(names) + 1))
        return fnmatchcase(names[name], parts[part]) and fits(part + 1, name + 1)

    return fits(0, 0)


def _expression(text: str) -> str:
    try:
        searcher(text)
    except ValueError as exc:
        raise ValueError(f"not a regular expression that is searched for ({exc})") from exc
    return text


Glob = Annotated[str, Field(max_length=500), AfterValidator(checked_glob)]
Expression = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_expression)]


class GlobArguments(Arguments):
    pattern: Glob = Field(description="*.md for names anywhere, docs/**/*.md for paths")
    limit: int = Field(default=100, ge=1, le=1000, description="how many files at most")


class GrepArguments(Arguments):
    pattern: Expression = Field(
        description="a regular expression, matched within a line; without look-around"
    )
    files: Glob = Field(default="**", description="which files, as for file.glob")
    ignore_case: bool = False
    limit: int = Field(default=50, ge=1, le=500, description="how many lines at most")


def file_tools(
    roots: Iterable[Path | str],
    exclude: Iterable[Path | str] = (),
    reading: DocumentSettings | None = None,
) -> tuple[Tool, ...]:
    """Raises ConfigError for a root that is not there. `exclude` stays closed within them."""
    allowed = Roots(roots, exclude)
    return file_read(allowed, reading), file_glob(allowed), file_grep(allowed)


def file_glob(roots: Roots) -> Tool:
    async def run(args: GlobArguments) -> ToolOutput:
        files, skipped = await in_daemon_thread(partial(_matching, roots, args.pattern))
        shown = [file.shown for file in files[: args.limit]]
        return ToolOutput(
            result={
                "pattern": args.pattern,
                "files": shown,
                "total": len(files),
                "truncated": len(files) > len(shown),
                "skipped": skipped,
            },
            claims=[claim(path, f"{path}:1") for path in shown],
        )

    return Tool(
        name=tool_names.FILE_GLOB,
        description="List files by a pattern of their paths. What git ignores is left out.",
        arguments=GlobArguments,
        access=frozenset({Access.READS}),
        run=run,
    )


def file_grep(roots: Roots, timeout_s: float = GREP_TIMEOUT_S) -> Tool:
    async def run(args: GrepArguments) -> ToolOutput:
        return await in_daemon_thread(partial(_grep, roots, args, monotonic() + timeout_s))

    return Tool(
        name=tool_names.FILE_GREP,
        description="Find lines that match a regular expression. What git ignores is left out.",
        arguments=GrepArguments,
        access=frozenset({Access.READS}),
        run=run,
        timeout_s=timeout_s + 5.0,
    )


def _matching(roots: Roots, pattern: str) -> tuple[list[FoundFile], dict[str, int]]:
    """Files whose path, from the root's own name down or below it, matches the pattern."""
    files, skipped = roots.files()
    return [
        file
        for file in files
        if glob_matches(pattern, file.shown)
        or glob_matches(pattern, file.shown.partition("/")[2] or file.shown)
    ], skipped


def _grep(roots: Roots, args: GrepArguments, ends_at: float) -> ToolOutput:
    found, reasons = _matching(roots, args.files)
    skipped = Counter(reasons)
    search = searcher(f"(?i){args.pattern}" if args.ignore_case else args.pattern)
    lines: list[dict[str, Any]] = []
    searched = 0
    for file in found:
        if len(lines) == args.limit:
            break
        if monotonic() > ends_at:
            raise ToolTimeoutError(
                f"searching for {args.pattern!r} did not end in time", hint="Search fewer files."
            )
        text, reason = _text(roots, file)
        if text is None:
            skipped[reason] += 1
            continue
        searched += 1
        matching = (
            {"path": file.shown, "line": number, "text": _around_match(line, search)}
            for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)
            if search(line[:LINE_CHARS])
        )
        lines += islice(matching, args.limit - len(lines))
    return ToolOutput(
        result={
            "pattern": args.pattern,
            "matches": lines,
            "files_searched": searched,
            "truncated": len(lines) == args.limit,
            "skipped": dict(skipped),
        },
        claims=[claim(line["text"].strip(), f"{line['path']}:{line['line']}") for line in lines],
    )


def _around_match(line: str, search: Callable[[str], bool]) -> str:
    """The first stretch of a long line that matches by itself, else its beginning."""
    stretches = (line[at : at + SHOWN_CHARS] for at in range(0, LINE_CHARS, SHOWN_CHARS // 2))
    return line if len(line) <= SHOWN_CHARS else next(filter(search, stretches), line[:SHOWN_CHARS])


def _text(roots: Roots, file: FoundFile) -> tuple[str | None, str]:
    """The file's text, or the reason why a search over many files goes past it."""
    try:
        return read_text(roots, roots.locate(file.path)), ""
    except SecretFileError:
        return None, SECRET
    except PathRefusedError:
        return None, "no regular file inside the folder"
    except FileUnusableError:
        return None, "not text, too large, or gone"
    except PermissionError:
        return None, "permission denied"
