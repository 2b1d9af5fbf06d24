"""A run, and two runs side by side, as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interventions.plaintext import clean, one_line
from unified_flow.evaluation.answers import COST, MEANINGS, QUALITY, EvaluatedAnswer
from unified_flow.turns.passage import public_text


def summary_table(found: dict[str, Any]) -> str:
    spec, measures = found["spec"], found["measures"]
    lines = [
        f"{found['run']}: {found['questions']} questions, {found['unanswerable']} without an"
        f" answer; {spec['pipeline']}, model {spec['model']}",
    ]
    for name in QUALITY:
        if (each := measures.get(name)) is not None:
            lines.append(
                f"  {MEANINGS[name]:<52}{each['value']:7.3f}"
                f"   [{each['low']:.3f}, {each['high']:.3f}]  n {each['n']}"
            )
    for name in COST:
        if (each := measures.get(name)) is not None:
            lines.append(f"  {MEANINGS[name]:<52}{each['value']:10.2f}")
    if found["phases"]:
        lines.append("  a turn:           visits  calls  from cache   prompt  written  seconds")
    for name, cost in found["phases"].items():
        lines.append(
            f"  {name:<17}{cost['visits']:7.2f}{cost['calls']:7.2f}{cost['cached']:12.2f}"
            f"{cost['prompt_tokens']:9.0f}{cost['completion_tokens']:9.0f}{cost['seconds']:9.2f}"
        )
    if found["interventions"]:
        lines.append(f"  {len(found['interventions'])} interventions: interventions list")
    return clean("\n".join(lines))


def comparison_table(run_a: str, run_b: str, found: dict[str, Any]) -> str:
    lines = [
        f"A {run_a}",
        f"B {run_b}",
        f"over {found['questions']} questions that both have answered; B - A, 95 %:",
    ]
    for name, each in found["measures"].items():
        digits = 2 if name in COST else 3
        lines.append(
            f"  {MEANINGS[name]:<52}{each['a']:9.{digits}f}{each['b']:9.{digits}f}"
            f"{each['difference']:+9.{digits}f}   [{each['low']:+.{digits}f},"
            f" {each['high']:+.{digits}f}]  {each['verdict']}"
        )
    return clean("\n".join(lines))


def wrong_answers(answers: Iterable[EvaluatedAnswer]) -> str:
    lines = []
    for answer in answers:
        if QUALITY["right"](answer):
            continue
        expected = "no answer" if answer.unanswerable else " / ".join(answer.answers)
        said = answer.trouble.message if answer.trouble else answer.response
        lines += [
            f"\n{answer.id}  {one_line(answer.question)}",
            f"  expected: {one_line(expected)}",
            f"  {answer.status}: {one_line(public_text(said))}",
        ]
    return clean("\n".join(lines))
