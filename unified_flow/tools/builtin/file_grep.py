"""`file.grep`: lines that match a regular expression, in files inside the allowed folders."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from unified_flow.config import tool_names
from unified_flow.errors import (
    FileUnusableError,
    PathRefusedError,
    ToolError,
    ToolTimeoutError,
)
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.discovery import FoundFile
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.tools.builtin.file_glob import Pattern, matching
from unified_flow.tools.builtin.file_read import read_text
from unified_flow.tools.builtin.roots import Roots
from unified_flow.turns.results import Claim

NAME = tool_names.FILE_GREP
TIMEOUT_S = 10.0
_WORKER = Path(__file__).with_name("grep_worker.py")


def _expression(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"not a regular expression ({exc})") from exc
    return text


class GrepArguments(Arguments):
    pattern: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_expression)] = (
        Field(description="a regular expression (Python's), matched within a line")
    )
    files: Pattern = Field(default="**", description="which files, as for file.glob")
    ignore_case: bool = False
    limit: int = Field(default=50, ge=1, le=500, description="how many lines at most")


def file_grep(roots: Roots, timeout_s: float = TIMEOUT_S) -> Tool:
    async def run(args: GrepArguments) -> ToolOutput:
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                return await _grep(roots, args)
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise ToolTimeoutError(
                f"searching for {args.pattern!r} did not end in {timeout_s:g} s",
                hint="Use a simpler pattern (no nested repeats), or search fewer files.",
            ) from exc

    return Tool(
        name=NAME,
        description="Find lines that match a regular expression. What git ignores is left out.",
        arguments=GrepArguments,
        access=frozenset({Access.READS}),
        run=run,
        timeout_s=timeout_s + 5.0,
    )


async def _grep(roots: Roots, args: GrepArguments) -> ToolOutput:
    found, skipped = await in_daemon_thread(partial(matching, roots, args.files))
    sent: list[str] = []
    matches, searched, more = await _search(roots, args, found, sent, skipped)
    lines = [
        {"path": sent[match["file"]], "line": match["line"], "text": match["text"]}
        for match in matches
    ]
    return ToolOutput(
        result={
            "pattern": args.pattern,
            "matches": lines,
            "files_searched": searched,
            "truncated": more,
            "skipped": skipped,
        },
        claims=[
            Claim(
                claim=line["text"].strip(), confidence=1.0, source=f"{line['path']}:{line['line']}"
            )
            for line in lines
        ],
    )


async def _search(
    roots: Roots,
    args: GrepArguments,
    found: list[FoundFile],
    sent: list[str],
    skipped: dict[str, int],
) -> tuple[list[dict[str, Any]], int, bool]:
    """`sent` receives the path of each file that the worker got, `skipped` the others' reasons."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(_WORKER),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
    )  # fmt: skip
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stderr is not None
    output = asyncio.ensure_future(asyncio.gather(worker.stdout.read(), worker.stderr.read()))
    try:
        await _feed(worker.stdin, roots, args, found, sent, skipped)
        out, err = await output
        await worker.wait()
    finally:
        output.cancel()
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    if worker.returncode != 0:
        said = err.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        raise ToolError(f"the search process ended with {worker.returncode}: {said}")
    *matches, last = [json.loads(line) for line in out.splitlines()]
    return matches, last["searched"], last["more"]


async def _feed(
    pipe: asyncio.StreamWriter,
    roots: Roots,
    args: GrepArguments,
    found: list[FoundFile],
    sent: list[str],
    skipped: dict[str, int],
) -> None:
    asked = args.model_dump(include={"pattern", "ignore_case", "limit"})
    try:
        pipe.write(json.dumps(asked).encode() + b"\n")
        for file in found:
            text, reason = await in_daemon_thread(partial(_text, roots, file))
            if text is None:
                skipped[reason] = skipped.get(reason, 0) + 1
                continue
            data = text.removesuffix("\n").encode()
            sent.append(file.shown)
            pipe.write(b"%d\n" % len(data) + data)
            await pipe.drain()
        pipe.write_eof()
        await pipe.drain()
    except ConnectionError:
        pass  # it has as many matches as were asked for, or failed, which its exit status says
    finally:
        pipe.close()


def _text(roots: Roots, file: FoundFile) -> tuple[str | None, str]:
    """The file's text, or the reason why a search over many files goes past it."""
    try:
        return read_text(roots, roots.locate(file.path)), ""
    except PathRefusedError:
        return None, "not a regular file inside the folder"
    except FileUnusableError:
        return None, "not text, too large, or gone"
    except PermissionError:
        return None, "permission denied"
