"""A question that is plainly a calculation: "what is 17% of 2300", "12*(3+4)"."""

from __future__ import annotations

import ast
import re

from unified_flow.errors import ToolArgumentError
from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.tools.builtin.calculate import MAX_CHARS, ImpossibleError, evaluate

_NUMBER = r"\d+(?:[.,\u00a0\u202f]\d+)*"
_FUNCTION = r"(?:sqrt|round|abs|log10|log2|log|exp|sin|cos|tan|factorial|floor|ceil|min|max)\("
_END = r"\s*[=?.!]*\s*$"
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "\u00a0": " "})  # noqa: RUF001
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?<=\d),(?=\d)")
# 1999-2001, 24/7, 802.11-2016: a span, a saying, a name, without the command to calculate it; no
# 1/0 is.
_SPAN = re.compile(r"[\d.]+(?:[-/][\d.]+)+(?<!/0)")


def arithmetic(query: str) -> str | None:
    """The expression, as the tool `calculate` reads it; None for a question in words."""
    every = any_language()
    opening = (
        rf"^\W{{0,3}}(?:(?:{every.please}\s+)?"
        rf"(?:{every.result_of}|(?P<command>{every.calculate}))[\s:]+)?"
    )
    percent = re.match(
        rf"{opening}(?P<share>{_NUMBER})\s*(?:%|{every.percent})\s+{every.of}\s+"
        rf"(?P<whole>{_NUMBER}){_END}",
        query,
        re.IGNORECASE,
    )
    if percent is not None:
        return f"{_plain(percent['whole'])} * {_plain(percent['share'])} / 100"
    match = re.match(
        rf"{opening}(?P<expression>(?:[-(\d.]|{_FUNCTION})[^?=]*?){_END}", query, re.IGNORECASE
    )
    if match is None:
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
