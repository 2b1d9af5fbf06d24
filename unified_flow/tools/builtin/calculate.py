"""`calculate`: arithmetic, bounded in length, size and time."""

from __future__ import annotations

import ast
import math
import operator
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from unified_flow.config import tool_names
from unified_flow.errors import ToolArgumentError
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.tools import Arguments, Tool, ToolOutput, claim

if TYPE_CHECKING:
    from simpleeval import SimpleEval

MAX_CHARS = 500
MAX_BITS = 4096
MAX_FACTORIAL = 300
MAX_DIGITS = 300
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
        text = f"{args.expression} = {shown(value)}"
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


def evaluate(expression: str) -> int | float:
    """Numbers only, whatever the expression tries; no names but constants, nothing to call but
    the functions below. Raises ToolArgumentError."""
    from simpleeval import InvalidExpression

    try:
        tree = ast.parse(expression.strip(), mode="eval")
        value = _evaluator().eval(expression, tree.body)
    except (_TooLargeError, OverflowError, MemoryError, RecursionError) as exc:
        raise ImpossibleError(
            f"{expression} is too large to calculate", hint="Ask for a smaller number."
        ) from exc
    except ZeroDivisionError as exc:
        raise ImpossibleError(f"{expression} divides by zero") from exc
    except ArithmeticError as exc:
        raise ImpossibleError(f"{expression} has no real value") from exc
    except (InvalidExpression, SyntaxError, ValueError, TypeError) as exc:
        raise ToolArgumentError(
            f"{expression!r} is no arithmetic: {exc}",
            hint=f"Use numbers, + - * / // % **, {', '.join(sorted(_FUNCTIONS))}.",
        ) from exc
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolArgumentError(f"{expression!r} is no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ImpossibleError(f"{expression} is too large to calculate")
    return value


def shown(value: float) -> str:
    """Twelve digits: 391.0 as 391, and 0.1 + 0.2 as 0.3."""
    return str(value) if isinstance(value, int) else f"{value:.12g}"


class _TooLargeError(ArithmeticError):
    pass


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise _TooLargeError
    return value


def _power(base: float, exponent: float) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(exponent) * int(base).bit_length() > MAX_BITS:
        raise _TooLargeError
    value = base**exponent
    if isinstance(value, complex):
        raise ArithmeticError("no real value")
    return value


def _defined(function: Any) -> Any:
    def apply(*numbers: float) -> Any:
        try:
            return function(*numbers)
        except ValueError as exc:  # log(0), sqrt(-1)
            raise ArithmeticError(exc) from exc

    return apply


def _binary(operation: Any) -> Any:
    return lambda a, b: _bounded(operation(a, b))


def _factorial(value: int) -> int:
    if value > MAX_FACTORIAL:
        raise _TooLargeError
    return math.factorial(value)


def _round(value: float, digits: int = 0) -> int | float:
    if abs(digits) > MAX_DIGITS:
        raise _TooLargeError
    return round(value, digits) if digits else round(value)


_PLAIN = (
    *(abs, max, min, math.ceil, math.floor, math.sqrt, math.exp, math.log, math.log2, math.log10),
    *(math.sin, math.cos, math.tan, math.degrees, math.radians),
)
_FUNCTIONS: dict[str, Any] = {each.__name__: each for each in _PLAIN}
_FUNCTIONS |= {"factorial": _factorial, "round": _round}
_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: _binary(operator.add),
    ast.Sub: _binary(operator.sub),
    ast.Mult: _binary(operator.mul),
    ast.Div: _binary(operator.truediv),
    ast.FloorDiv: _binary(operator.floordiv),
    ast.Mod: _binary(operator.mod),
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def _evaluator() -> SimpleEval:
    """simpleeval, with nothing in it but numbers, constants, operations and calls of functions: a
    text or a format could take all memory at once."""
    from simpleeval import SimpleEval

    functions = {name: _defined(function) for name, function in _FUNCTIONS.items()}
    evaluator = SimpleEval(
        operators=dict(_OPERATORS), functions=functions, names={}, allowed_attrs={}
    )
    known = {kind: evaluator.nodes[kind] for kind in (ast.BinOp, ast.Call, ast.UnaryOp)}
    evaluator.nodes = {**known, ast.Constant: _number, ast.Name: _constant}
    return evaluator


def _number(node: ast.Constant) -> int | float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise TypeError(f"{type(node.value).__name__} is no number")
    return node.value


def _constant(node: ast.Name) -> float:
    if node.id not in _CONSTANTS:
        raise ValueError(f"{node.id!r} is no number")
    return _CONSTANTS[node.id]
