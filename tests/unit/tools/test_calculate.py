"""Arithmetic, and nothing else that an expression could try."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.unit.tools.running import run
from unified_flow.errors import ToolArgumentError
from unified_flow.tools.builtin.calculate import CALCULATE
from unified_flow.tools.toolbox import Toolbox

BOX = Toolbox([CALCULATE])


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("12*(3+4)", "84"),
        ("2300 * 17 / 100", "391"),
        ("0.1 + 0.2", "0.3"),
        ("2 ** -1", "0.5"),
        ("sqrt(2)", "1.41421356237"),
        ("round(2.567, 2)", "2.57"),
        ("factorial(20)", "2432902008176640000"),
        ("7 // 2 + 7 % 2", "4"),
        ("max(1, 2.5) - pi * 0", "2.5"),
        ("-(-3)", "3"),
        ("10 ** 400 // 10 ** 399", "10"),
    ],
)
def test_a_result_and_a_claim_that_says_it(expression: str, text: str) -> None:
    found = run(BOX, "calculate", expression=expression)
    assert found.claims[0].claim == f"{expression} = {text}"
    assert found.claims[0].source == "calculate"
    assert found.result["value"] == pytest.approx(float(text))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("9**9**9", "is too large to calculate"),
        ("9**9**9**9", "is too large to calculate"),
        ("factorial(99999)", "is too large to calculate"),
        ("factorial(300) * factorial(300) * factorial(300)", "is too large to calculate"),
        ("10**300 * 1e300", "is too large to calculate"),
        ("exp(10000)", "is too large to calculate"),
        ("round(5, -10**8)", "is too large to calculate"),
        ("(((2**4000)**1)*(2**4000))", "is too large to calculate"),
        ("1 / 0", "divides by zero"),
        ("sqrt(-1)", "has no real value"),
        ("log(0)", "has no real value"),
        ("(-8) ** 0.5", "has no real value"),
    ],
)
def test_what_has_no_result_is_answered_with_the_reason(expression: str, why: str) -> None:
    found = run(BOX, "calculate", expression=expression)
    assert found.result["value"] is None
    assert found.claims[0].claim == f"There is no result: {expression} {why}."


@pytest.mark.parametrize(
    "expression",
    [
        "'a' * 99999",
        "[0] * 99999",
        "(1).__class__",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "lambda: 1",
        "x := 3",
        "x = 3",
        "1; 2",
        "1 < 2",
        "True + 1",
        "abs()",
        "[x for x in (1, 2)]",
        "f'{1}'",
        "1 +",
        "(" * 240 + "1" + ")" * 240,
        "what",
    ],
)
def test_all_else_is_refused_before_it_is_computed(expression: str) -> None:
    with pytest.raises(ToolArgumentError):
        run(BOX, "calculate", expression=expression)


@pytest.mark.parametrize(
    "expression",
    [
        'f"{1:>300000000}"',
        'max(1, f"{1:>300000000}")',
        "max(1, 2, key=abs)",
        "max(*(1, 2))",
        "1 if 1 else 2",
        "max('a', 'b')",
        "abs",
        "sin + 1",
        "True",
        "~1",
        "not 1",
    ],
)
def test_nothing_but_arithmetic_is_even_evaluated(expression: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ToolArgumentError, match="is no arithmetic"):
            run(BOX, "calculate", expression=expression)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_a_long_expression_is_refused_unread() -> None:
    with pytest.raises(ToolArgumentError, match="at most 500"):
        run(BOX, "calculate", expression="1+" * 400 + "1")
