"""What a question wants besides text of the documents: small talk, a file, a tool, a web page, or
to have something calculated."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Literal

from unified_flow.config.tool_names import FILE_GLOB, FILE_GREP, FILE_READ
from unified_flow.errors import ToolArgumentError
from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.lib.text.urls import URL, urls_in
from unified_flow.tools.builtin.calculate import MAX_CHARS, ImpossibleError, evaluate
from unified_flow.tools.builtin.internet_research import MAX_URLS
from unified_flow.tools.toolbox import arguments_from_json, arguments_from_pairs
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.sections import ToolDescription

# Suffixes of text, so that "U.S." and "example.com" are no files.
_SUFFIXES = (
    "md|markdown|rst|txt|html?|adoc|tex|csv|tsv|json|ya?ml|toml|ini|cfg|conf|xml|log|py|pyi|js|ts|tsx"
    "|jsx|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|sh|sql|css|swift|lua"
)
_FILE_PATH = re.compile(rf"(?P<path>(?:[\w.~-]+/)*[\w-][\w.-]*\.(?:{_SUFFIXES}))\b(?!\.\w)")
_QUOTED_TEXT = re.compile(r"`([^`]+)`|\"([^\"]+)\"|'([^']+)'|“([^”]+)”")
_NUMBER = r"\d+(?:[.,\u00a0\u202f]\d+)*"
_FUNCTION = r"(?:sqrt|round|abs|log10|log2|log|exp|sin|cos|tan|factorial|floor|ceil|min|max)\("
_END = r"\s*[=?.!]*\s*$"
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "\u00a0": " "})  # noqa: RUF001
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?<=\d),(?=\d)")
# 1999-2001, 24/7, 802.11-2016: a span, a saying, a name, without the command to calculate it; no
# 1/0 is.
_SPAN = re.compile(r"[\d.]+(?:[-/][\d.]+)+(?<!/0)")


@lru_cache(maxsize=512)
def talk_of(query: str) -> tuple[Literal["greeting", "thanks"], str] | None:
    """(what it is, its language), for small talk. Kept, as every phase of a turn asks it."""
    for each in lexicons():
        if each.greeting.match(query):
            return "greeting", each.language
        if each.thanks.match(query):
            return "thanks", each.language
    return None


@lru_cache(maxsize=512)
def file_request(query: str) -> ToolRequest | None:
    """Only for a question that plainly names a file, a pattern or a quoted text to find. Kept like
    `talk_of`."""
    if (listed := _listed_files(query)) is not None:
        return ToolRequest(tool=FILE_GLOB, args={"pattern": listed}, goal_id="g1")
    path = _FILE_PATH.search(query)
    lines = _lines_of_file().search(query)
    if path and (lines or any(each.show_file.search(query[: path.start()]) for each in lexicons())):
        args: dict[str, Any] = {"path": path.group("path").strip(".")}
        if lines:
            args["start_line"] = max(1, int(lines.group("first")))
            last = int(lines.group("last") or lines.group("first"))
            args["end_line"] = max(args["start_line"], last)
        return ToolRequest(tool=FILE_READ, args=args, goal_id="g1")
    quoted = _QUOTED_TEXT.search(query)
    if quoted is None or not any(each.find_text.search(query) for each in lexicons()):
        return None
    if any(each.occurs.search(query) for each in lexicons()):
        text = next(group for group in quoted.groups() if group)
        return ToolRequest(tool=FILE_GREP, args={"pattern": re.escape(text)}, goal_id="g1")
    return None


@cache
def _lines_of_file() -> re.Pattern[str]:
    every = any_language()
    last = rf"(?:\s*(?:[-–]|{every.up_to})\s*(?P<last>\d+))?"  # noqa: RUF001
    return re.compile(rf"\b{every.line}\s+(?P<first>\d+){last}", re.IGNORECASE)


def _listed_files(query: str) -> str | None:
    """The pattern of the files to list."""
    if any(each.all_files.match(query) for each in lexicons()):
        return "**"
    if not any(each.list_files.search(query) for each in lexicons()):
        return None
    match = _glob().search(query)
    return None if match is None else match.group("glob") or f"*{match.group('suffix')}"


@cache
def _glob() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w`])(?P<glob>[\w./-]*\*[\w./*-]*)"
        rf"|(?<![\w/])(?P<suffix>\.[A-Za-z]\w{{0,7}})\s+{any_language().files}\b"
    )


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
    """The language of the verb that calls a tool, for names and arguments mislead; else None."""
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
        return arguments_from_json(rest)
    return arguments_from_pairs(shlex.split(rest), tool.parameters)


@cache
def _sums() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """ "17 % of 300", and an expression."""
    every = any_language()
    opening = (
        rf"^\W{{0,3}}(?:(?:{every.please}\s+)?"
        rf"(?:{every.result_of}|(?P<command>{every.calculate}))[\s:]+)?"
    )
    share = rf"(?P<share>{_NUMBER})\s*(?:%|{every.percent})\s+{every.of}\s+(?P<whole>{_NUMBER})"
    expression = rf"(?P<expression>(?:[-(\d.]|{_FUNCTION})[^?=]*?)"
    return (
        re.compile(rf"{opening}{share}{_END}", re.IGNORECASE),
        re.compile(rf"{opening}{expression}{_END}", re.IGNORECASE),
    )


@lru_cache(maxsize=512)
def arithmetic(query: str) -> str | None:
    """The expression, as the tool `calculate` reads it; None for a question in words. Kept like
    `talk_of`."""
    percent, any_expression = _sums()
    if (found := percent.match(query)) is not None:
        return f"{_plain(found['whole'])} * {_plain(found['share'])} / 100"
    if (match := any_expression.match(query)) is None:
        return None
    expression = match["expression"]
    for lexicon in lexicons():
        for sign, names in lexicon.signs.items():
            expression = re.sub(rf"\b(?:{names})\b", sign, expression, flags=re.IGNORECASE)
    expression = _plain(expression.translate(_SIGNS).replace("^", "**")).strip()
    if _SPAN.fullmatch(expression) and match["command"] is None:
        return None
    return expression if _is_arithmetic(expression) else None


def _plain(text: str) -> str:
    """1,234.5 and 1 234,5 as Python writes them; the comma between arguments stays."""
    text = _THOUSANDS.sub(lambda m: m.group().replace(",", ""), text)
    return _DECIMAL.sub(".", text.replace("\u202f", "").replace("\u00a0", ""))


def _is_arithmetic(expression: str) -> bool:
    if len(expression) > MAX_CHARS:
        return False
    try:
        evaluate(expression)
    except ImpossibleError:
        return True
    except ToolArgumentError:
        return False
    return isinstance(ast.parse(expression, mode="eval").body, ast.BinOp | ast.Call)


def without_addresses(question: str) -> str:
    return " ".join(URL.sub(" ", question).split()) or question


@cache
def _reading() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What asks to read an address, and what is left of it without the address: "According to URL,
    …", "Read URL and …", "What does URL say about …"."""
    every = any_language()
    asks = rf"(?P<what>{every.what})\s+(?:{every.do}\s+)?"
    return (
        re.compile(
            rf"^\W*(?:{every.could_you}\s+)?(?:{every.please}[\s,]+)?"
            rf"(?:{every.page}\b[^?!]{{0,40}}?\bURL|{asks}URL\s+{every.says}\b)",
            re.IGNORECASE,
        ),
        re.compile(
            rf"^\W*(?:{every.please}\s+)?"
            rf"(?:{every.page}\b[\s,:;.]*(?:{every.conjunction}\s+)?"
            rf"|{asks}{every.says}\s+{every.about})",
            re.IGNORECASE,
        ),
    )


def pages_to_read(question: str) -> tuple[list[str], str] | None:
    """(addresses, what is asked of them), only if it asks to read what it names: an address in
    "How do I load https://… with httpx?" is part of the question."""
    urls = urls_in(question)
    wanted, left_over = _reading()
    if not urls or wanted.match(URL.sub("URL", question)) is None:
        return None
    rest = without_addresses(question)
    asked = left_over.sub(lambda match: match["what"] or "", rest).strip()
    return list(dict.fromkeys(urls))[:MAX_URLS], asked


def is_about_user(question: str) -> bool:
    """Whether it is about the person who asks, as "how do I …" is not."""
    if not any(each.about_user.search(question) for each in lexicons()):
        return False
    how = (each.asks["manner"] for each in lexicons() if "manner" in each.asks)
    opening = re.search(r"\w", question)
    return not (opening and any(pattern.match(question, opening.start()) for pattern in how))


def asks_for_memories(question: str) -> bool:
    """Whether it asks for all that is remembered of the person who asks."""
    return any(each.memories.match(question) for each in lexicons())


@lru_cache(maxsize=32)  # for the quotes, and for what a small model is to be shown
def question_about_pages(question: str) -> str:
    """What is asked about the pages that the question names, without their addresses."""
    found = pages_to_read(question)
    return without_addresses(question) if found is None else found[1] or question
