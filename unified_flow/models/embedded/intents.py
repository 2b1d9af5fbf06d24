"""What is asked of something other than the documents' text: a greeting, the session, a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from unified_flow.lib.text import language_of
from unified_flow.lib.text.lexicon import any_language, lexicon_of, lexicons

Talk = Literal["greeting", "thanks", "recall"]

# Suffixes of text, so that "U.S." and "example.com" are no files.
_SUFFIXES = (
    "md|markdown|rst|txt|html?|adoc|tex|csv|tsv|json|ya?ml|toml|ini|cfg|conf|xml|log|py|pyi|js|ts|tsx"
    "|jsx|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|sh|sql|css|swift|lua|msg|srv|action|launch"
)
_PATH = rf"(?P<path>(?:[\w.~-]+/)*[\w-][\w.-]*\.(?:{_SUFFIXES}))\b(?!\.\w)"
_QUOTED = r"(?:`(?P<code>[^`]+)`|\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'|“(?P<typeset>[^”]+)”)"
_FILE_PATH = re.compile(_PATH)
_QUOTED_TEXT = re.compile(_QUOTED)


@cache
def _lines() -> re.Pattern[str]:
    every = any_language()
    return re.compile(
        rf"\b{every.line}\s+(?P<first>\d+)(?:\s*(?:[-–]|{every.up_to})\s*(?P<last>\d+))?",  # noqa: RUF001
        re.IGNORECASE,
    )


@cache
def _glob() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w`])(?P<glob>[\w./-]*\*[\w./*-]*)"
        rf"|(?<![\w/])(?P<suffix>\.[A-Za-z]\w{{0,7}})\s+{any_language().files}\b"
    )


@dataclass(frozen=True)
class FileIntent:
    tool: Literal["file.read", "file.grep", "file.glob"]
    args: dict[str, Any]


def talk_of(query: str) -> Talk | None:
    if any(each.greeting.match(query) for each in lexicons()):
        return "greeting"
    if any(each.thanks.match(query) for each in lexicons()):
        return "thanks"
    own = (lexicon_of(language_of(query)), lexicon_of("en"))
    return "recall" if any(each.recall.search(query) for each in own) else None


def talk_language(query: str) -> str:
    """The language of a greeting, which has no common words to tell it by."""
    for each in lexicons():
        if each.greeting.match(query) or each.thanks.match(query):
            return each.language
    return language_of(query)


def file_intent(query: str) -> FileIntent | None:
    """Only for a question that plainly names a file, a pattern or a quoted text to find."""
    if (listing := _listing(query)) is not None:
        return listing
    path = _FILE_PATH.search(query)
    lines = _lines().search(query)
    if path and (lines or any(each.show_file.search(query[: path.start()]) for each in lexicons())):
        args: dict[str, Any] = {"path": path.group("path").strip(".")}
        if lines:
            args["start_line"] = max(1, int(lines.group("first")))
            last = int(lines.group("last") or lines.group("first"))
            args["end_line"] = max(args["start_line"], last)
        return FileIntent("file.read", args)
    quoted = _QUOTED_TEXT.search(query)
    wanted = any(each.find_text.search(query) for each in lexicons())
    if quoted and wanted and any(each.occurs.search(query) for each in lexicons()):
        text = next(group for group in quoted.groups() if group)
        return FileIntent("file.grep", {"pattern": re.escape(text)})
    return None


def _listing(query: str) -> FileIntent | None:
    if any(each.all_files.match(query) for each in lexicons()):
        return FileIntent("file.glob", {"pattern": "**"})
    listed = any(each.list_files.search(query) for each in lexicons())
    match = _glob().search(query) if listed else None
    if match is None:
        return None
    return FileIntent("file.glob", {"pattern": match.group("glob") or f"*{match.group('suffix')}"})
