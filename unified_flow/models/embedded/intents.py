"""What is asked of something other than the documents' text: a greeting, the session, a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from unified_flow.lib.text import language_of
from unified_flow.models.embedded.lexicon import lexicon_of

Talk = Literal["greeting", "thanks", "recall"]

# Suffixes of text, so that "U.S." and "example.com" are no files.
_SUFFIXES = (
    "md|markdown|rst|txt|html?|adoc|tex|csv|tsv|json|ya?ml|toml|ini|cfg|conf|xml|log|py|pyi|js|ts|tsx"
    "|jsx|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|sh|sql|css|swift|lua|msg|srv|action|launch"
)
_PATH = rf"(?P<path>(?:[\w.~-]+/)*[\w-][\w.-]*\.(?:{_SUFFIXES}))\b(?!\.\w)"
_QUOTED = r"(?:`(?P<code>[^`]+)`|\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'|“(?P<typeset>[^”]+)”)"
_LINES = re.compile(
    r"\b(?:lines?|rad(?:erna)?|lignes?)\s+(?P<first>\d+)(?:\s*(?:-|–|to|till|à|through)\s*(?P<last>\d+))?",  # noqa: RUF001
    re.IGNORECASE,
)
_READ = re.compile(
    r"\b(?:what\s+(?:is|stands|does)\b.*\b(?:in|on|say|contain)|show|print|read|open|display|cat|head"
    r"|vad\s+står|visa|läs|öppna|que\s+contient|montre[rz]?|affiche[rz]?|lis(?:ez)?)\b",
    re.IGNORECASE,
)
_FILE_PATH = re.compile(_PATH)
_WHERE_TEXT = re.compile(
    r"\b(?:where|which\s+(?:files?|lines?)|in\s+what\s+files?|find|grep|search\s+for|occurrences?|var|vilka\s+filer"
    r"|où|quels\s+fichiers)\b",
    re.IGNORECASE,
)
_OCCURS = re.compile(
    r"\b(?:occur|string|text|word|appear|contain|mention|grep|defined|used|förekommer|strängen|texten|ordet"
    r"|innehåller|apparaît|chaîne|contiennent)\w*",
    re.IGNORECASE,
)
_QUOTED_TEXT = re.compile(_QUOTED)
_LIST = re.compile(
    r"\b(?:list|show|which|what)\b.*\bfiles\b|\bwhat\s+files\b|\b(?:lista|vilka)\b.*\bfiler\b"
    r"|\bquels\s+(?:sont\s+les\s+)?fichiers\b",
    re.IGNORECASE,
)
_GLOB = re.compile(
    r"(?<![\w`])(?P<glob>[\w./-]*\*[\w./*-]*)|(?<![\w/])(?P<suffix>\.[A-Za-z]\w{0,7})\s+(?:files|filer)\b"
)
_ALL_FILES = re.compile(
    r"^\W*(?:(?:please\s+)?list|show(?:\s+me)?|which|what|lista|vilka|quels)\s+(?:all\s+|alla\s+)?(?:the\s+)?"
    r"(?:files|filer|fichiers)(?:\s+(?:are\s+there|do\s+you\s+have|exist|finns(?:\s+det)?|are\s+indexed))?\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FileIntent:
    tool: Literal["file.read", "file.grep", "file.glob"]
    args: dict[str, Any]


def talk_of(query: str) -> Talk | None:
    lexicon = lexicon_of(language_of(query))
    english = lexicon_of("en")
    for each in (lexicon, english):
        if each.greeting and each.greeting.match(query):
            return "greeting"
        if each.thanks and each.thanks.match(query):
            return "thanks"
        if each.recall and each.recall.search(query):
            return "recall"
    # "Bonjour" and "Tack" alone do not tell their language by common words.
    for code in ("sv", "fr", "zh"):
        other = lexicon_of(code)
        if other.greeting and other.greeting.match(query):
            return "greeting"
        if other.thanks and other.thanks.match(query):
            return "thanks"
    return None


def talk_language(query: str) -> str:
    """The language of a greeting, which has no common words to tell it by."""
    for code in ("en", "sv", "fr", "zh"):
        lexicon = lexicon_of(code)
        if any(p and p.match(query) for p in (lexicon.greeting, lexicon.thanks)):
            return code
    return language_of(query)


def file_intent(query: str) -> FileIntent | None:
    """Only for a question that plainly names a file, a pattern or a quoted text to find."""
    if (listing := _listing(query)) is not None:
        return listing
    path = _FILE_PATH.search(query)
    lines = _LINES.search(query)
    if path and (lines or _READ.search(query[: path.start()])):
        args: dict[str, Any] = {"path": path.group("path").strip(".")}
        if lines:
            args["start_line"] = max(1, int(lines.group("first")))
            last = int(lines.group("last") or lines.group("first"))
            args["end_line"] = max(args["start_line"], last)
        return FileIntent("file.read", args)
    quoted = _QUOTED_TEXT.search(query)
    if quoted and _WHERE_TEXT.search(query) and _OCCURS.search(query):
        text = next(group for group in quoted.groups() if group)
        return FileIntent("file.grep", {"pattern": re.escape(text)})
    return None


def _listing(query: str) -> FileIntent | None:
    if _ALL_FILES.match(query):
        return FileIntent("file.glob", {"pattern": "**"})
    match = _GLOB.search(query) if _LIST.search(query) else None
    if match is None:
        return None
    return FileIntent("file.glob", {"pattern": match.group("glob") or f"*{match.group('suffix')}"})
