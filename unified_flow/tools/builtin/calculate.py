"""`calculate`: arithmetic, bounded in length, size and time."""

from __future__ import annotations

import ast
import math
import operator
from functools import partial
from typing import Any

from pydantic import Field

from unified_flow.config import tool_names
from unified_flow.errors import ToolArgumentError
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.tools import Arguments, Tool, ToolOutput, claim

MAX_CHARS = 500
MAX_BITS = 4096
MOST = 300  # of a factorial, and of the digits that are rounded to
TIMEOUT_S = 2.0


class CalculateArguments(Arguments):
    expression: str = Field(
        min_length=1,
        max_length=MAX_CHARS,
        description="such as (2 + 3) * 4 ** 2, sqrt(2), round(2300 * 17 / 100, 2)",
    )


class ImpossibleError(ToolArgumentError):
    """Arithmetic without a result, or with one that is too large."""


async def _run(args: CalculateArguments) -> ToolOutput:
    """That there is no result is an answer. Raises ToolArgumentError for what is no arithmetic."""
    value: float | None = None
    try:
        value = await in_daemon_thread(partial(evaluate, args.expression))
        # Twelve digits: 391.0 as 391, and 0.1 + 0.2 as 0.3.
        text = f"{args.expression} = {value if isinstance(value, int) else format(value, '.12g')}"
    except ImpossibleError as exc:
        text = f"There is no result: {exc}."
    result = {"expression": args.expression, "value": value, "text": text}
    return ToolOutput(result, [claim(text, tool_names.CALCULATE)])


CALCULATE = Tool(
    name=tool_names.CALCULATE,
    description="Calculate an arithmetic expression: + - * / // % ** and the usual functions.",
    arguments=CalculateArguments,
    access=frozenset(),
    run=_run,
    timeout_s=TIMEOUT_S,
)


def evaluate(expression: str) -> float:
    """Numbers, operations and functions, and nothing else that an expression could hold. Raises
    ToolArgumentError."""
    try:
        value: float = _value(ast.parse(expression.strip(), mode="eval").body)
        if isinstance(value, complex):
            raise ValueError
        if value.bit_length() > MAX_BITS if isinstance(value, int) else not math.isfinite(value):
            raise OverflowError
    except ZeroDivisionError as exc:
        raise ImpossibleError(f"{expression} divides by zero") from exc
    except (OverflowError, MemoryError, RecursionError) as exc:
        raise ImpossibleError(
            f"{expression} is too large to calculate", hint="Ask for a smaller number."
        ) from exc
    except ValueError as exc:  # log(0), sqrt(-1)
        raise ImpossibleError(f"{expression} has no real value") from exc
    except (SyntaxError, TypeError) as exc:
        raise ToolArgumentError(
            f"{expression!r} is no arithmetic: {exc}",
            hint=f"Use numbers, + - * / // % **, {', '.join(sorted(_FUNCTIONS))}.",
        ) from exc
    return value


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=inner):
            return -_value(inner) if isinstance(sign, ast.USub) else _value(inner)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*map(_value, args))
    raise TypeError(f"{ast.unparse(node)[:60]} is no number")


def _power(base: float, exponent: float) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(exponent) * int(base).bit_length() > MAX_BITS:
        raise OverflowError
    return base**exponent


def _factorial(value: int) -> int:
    if value > MOST:
        raise OverflowError
    return math.factorial(value)


def _round(value: float, digits: int = 0) -> int | float:
    if abs(digits) > MOST:
        raise OverflowError
    return round(value, digits) if digits else round(value)


_PLAIN = (
    *(abs, max, min, math.ceil, math.floor, math.sqrt, math.exp, math.log, math.log2, math.log10),
    *(math.sin, math.cos, math.tan, math.degrees, math.radians),
)
_FUNCTIONS: dict[str, Any] = {each.__name__: each for each in _PLAIN}
_FUNCTIONS |= {"factorial": _factorial, "round": _round}
_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
_OPERATIONS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
