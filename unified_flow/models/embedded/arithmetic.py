"""A question that is plainly a calculation: "what is 17% of 2300", "12*(3+4)"."""

from __future__ import annotations

import ast
import re

from unified_flow.tools.builtin.calculate import MAX_CHARS, NAMES

_ASKED = r"what(?:['’]s|\s+is|\s+are)|how\s+much\s+(?:is|are)|vad\s+(?:är|blir)|hur\s+mycket\s+är|combien\s+(?:font|fait)|que\s+(?:font|fait)"  # noqa: E501, RUF001
_TOLD = r"calculate|compute|work\s+out|räkna\s+ut|beräkna|calcule[rz]?"
_PREFIX = rf"^\W{{0,3}}(?:(?:please\s+)?(?:(?P<asked>{_ASKED})|(?P<told>{_TOLD}))[\s:]+)?"
_NUMBER = r"\d+(?:[.,\u00a0\u202f]\d+)*"
_PERCENT = re.compile(
    rf"{_PREFIX}(?P<share>{_NUMBER})\s*(?:%|per\s?cent|procent|pour\s?cent)\s+(?:of|av|de)\s+(?P<whole>{_NUMBER})\s*[=?.!]*\s*$",
    re.IGNORECASE,
)
_EXPRESSION = re.compile(rf"{_PREFIX}(?P<expression>[-(\d.][^?=]*?)\s*[=?.!]*\s*$", re.IGNORECASE)
_FUNCTION = r"(?:sqrt|round|abs|log10|log2|log|exp|sin|cos|tan|factorial|floor|ceil|min|max)\("
_CALL = re.compile(rf"{_PREFIX}(?P<expression>{_FUNCTION}[^?=]*?)\s*[=?.!]*\s*$", re.IGNORECASE)
_WORDS = (
    (re.compile(r"\b(?:to\s+the\s+power\s+of|upphöjt\s+till)\b", re.IGNORECASE), "**"),
    (re.compile(r"\b(?:divided\s+by|delat\s+med|divisé\s+par)\b", re.IGNORECASE), "/"),
    (re.compile(r"\b(?:times|multiplied\s+by|gånger|fois)\b", re.IGNORECASE), "*"),
    (re.compile(r"\b(?:plus)\b", re.IGNORECASE), "+"),
    (re.compile(r"\b(?:minus|moins)\b", re.IGNORECASE), "-"),
)
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "\u00a0": " "})  # noqa: RUF001
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?<=\d),(?=\d)")
# 1999-2001, 24/7, 802.11-2016: a span, a saying, a name, unless one is told to calculate it.
_SPAN = re.compile(r"[\d.]+(?:[-/][\d.]+)+")


def arithmetic(query: str) -> str | None:
    """The expression, as the tool `calculate` reads it; None for a question in words."""
    if (percent := _PERCENT.match(query)) is not None:
        return f"{_plain(percent['whole'])} * {_plain(percent['share'])} / 100"
    match = _EXPRESSION.match(query) or _CALL.match(query)
    if match is None:
        return None
    expression = match["expression"]
    for word, sign in _WORDS:
        expression = word.sub(sign, expression)
    expression = _plain(expression.translate(_SIGNS).replace("^", "**")).strip()
    if _SPAN.fullmatch(expression) and match["told"] is None:
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
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return isinstance(tree, ast.BinOp | ast.Call) and all(
        isinstance(each, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Load)
        or (isinstance(each, ast.Constant) and isinstance(each.value, int | float))
        or (isinstance(each, ast.Call) and isinstance(each.func, ast.Name))
        or (isinstance(each, ast.Name) and each.id in NAMES)
        for each in ast.walk(tree)
    )
